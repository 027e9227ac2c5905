// What must be alike on all ranks of a launch, or should be: the program and its libraries, the
// arithmetic, the processor, the environment.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"
#include "tensor/gemm.hpp"

namespace kzero::probe {

/// Says what a difference between ranks means.
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

/// The facts that are known before MPI carries anything but text: the program, MPI.
Facts program_facts();

/// The facts of a session: `bits` digests what sample products give, `threads` are those of a rank
/// and `cores` those of its node.
struct Session {
  Index threads = 1;
  Index cores = 0;
  std::string arithmetic{};
  std::string bits{};
};

/// Returns all facts of this rank, those of the program included.
Facts all_facts(const Session& session);

/// Facts as text of one rank to another, and back.
std::string encode(const Facts& facts);
Facts decode(const std::string& text);

}  // namespace kzero::probe
