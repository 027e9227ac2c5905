// The back ends that a model uses to compute and communicate.
#pragma once

#include <memory>
#include <string>

#include "comm/traffic.hpp"
#include "deck/config.hpp"
#include "grid/process_grid.hpp"
#include "memory/ledger.hpp"
#include "memory/shared_memory.hpp"
#include "model/definition.hpp"

namespace kzero::comm {
class Communicator;
}
namespace kzero::tensor {
class Gemm;
}

namespace kzero::engine {

struct Machinery {
  const grid::ProcessGrid& grid;
  Index threads;  // of this rank
  std::unique_ptr<tensor::Gemm> gemm;
  comm::Traffic traffic;
  // For messages whose size grows with the model.
  std::unique_ptr<comm::Communicator> data, tensor, sequence;
  memory::Ledger ledger;

  /// Makes the back ends of a resolved deck. `grid` must outlive the object. Throws
  /// AgreedError(usage) if this build lacks a back end. Collective over all ranks of the grid.
  Machinery(const deck::Config& config, Index thread_count, const grid::ProcessGrid& ranks);
  ~Machinery();

  /// Allocates memory that the data group's ranks on this node share; null for 0 bytes. Throws
  /// AgreedError if the system refuses, with advice what to do `instead`. Collective over those
  /// ranks.
  std::unique_ptr<memory::SharedMemory> share(Index bytes, const std::string& instead) const;
};

model::TensorRank tensor_rank(const grid::ProcessGrid& grid);

/// Throws Error(memory) if this node's free memory cannot hold `bytes` for each of `node_ranks`
/// ranks. `smaller` names changes that need less memory. Checks nothing in device builds.
void require_memory(const memory::Bytes& bytes, Index node_ranks, const std::string& smaller);

/// Returns the total and the categories in use: "12.5 MiB: parameters 8 MiB, activations 4.5 MiB".
std::string memory_text(const memory::Bytes& bytes);

}  // namespace kzero::engine
