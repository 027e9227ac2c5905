// Facts that must or should be the same on all ranks of a launch: the program and its libraries,
// the arithmetic, the processor and the environment.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"
#include "tensor/gemm.hpp"

namespace kzero::probe {

/// What a difference between ranks means.
enum class Weight {
  required,  // the ranks cannot run together, or their bits differ
  advisory,  // a node may be slow or misconfigured
};

struct Fact {
  std::string name;   // starts with "library " or "variable " for those
  std::string value;  // may have several lines; empty: missing on this rank
  Weight weight = Weight::advisory;

  bool operator==(const Fact&) const = default;
};

using Facts = std::vector<Fact>;

/// Facts available while MPI carries only text: the program and MPI.
Facts program_facts();

/// The facts of a session. `bits` is a digest of sample products, `threads` are those of a rank and
/// `cores` those of its node.
struct Session {
  Index threads = 1;
  Index cores = 0;
  std::string arithmetic{};
  std::string bits{};
};

/// Returns all facts of this rank, including those of the program.
Facts all_facts(const Session& session);

/// Convert facts to text for another rank, and back.
std::string encode(const Facts& facts);
Facts decode(const std::string& text);

}  // namespace kzero::probe
