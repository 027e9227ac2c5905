// Facts that must or should be equal on all ranks of a launch: the program and its libraries, the
// arithmetic, the processor, the environment.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::probe {

/// The weight of a difference between ranks.
enum class Weight {
  required,  // the ranks cannot run together, or do not compute the same bits
  advisory,  // one of the nodes may be slow or set up by mistake
};

struct Fact {
  std::string name;   // of a library or a variable of the environment with that word before it
  std::string value;  // may have several lines; empty: this rank does not have it
  Weight weight = Weight::advisory;

  bool operator==(const Fact&) const = default;
};

using Facts = std::vector<Fact>;

/// The facts that are compared before any other message is sent: the program and the MPI library.
Facts program_facts();

/// The facts of a session. `bits` is a digest of sample products, `threads` are the threads of a
/// rank, and `cores` the cores of its node.
struct Session {
  Index threads = 1;
  Index cores = 0;
  std::string arithmetic{};
  std::string bits{};
};

/// Returns all facts of this rank, including those of the program.
Facts all_facts(const Session& session);

/// Converts facts to text that is sent to another rank, and back.
std::string encode(const Facts& facts);
Facts decode(const std::string& text);

}  // namespace kzero::probe
