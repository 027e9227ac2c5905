// What a model computes and communicates with on the ranks of a launch.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "comm/traffic.hpp"
#include "deck/config.hpp"
#include "grid/process_grid.hpp"
#include "memory/ledger.hpp"
#include "model/definition.hpp"
#include "tensor/gemm.hpp"

namespace kzero::engine {

struct Machinery {
  const grid::ProcessGrid& grid;
  Index threads;  // of this rank
  std::unique_ptr<tensor::Gemm> gemm;
  comm::Traffic traffic;
  std::unique_ptr<comm::Communicator> data, tensor;  // for messages that grow with the model
  memory::Ledger ledger;

  /// Makes the back ends that a resolved deck chooses. `grid` must outlive the object. Throws
  /// AgreedError(usage) if this build lacks one of them. Collective over all ranks of the grid.
  Machinery(const deck::Config& config, Index thread_count, const grid::ProcessGrid& ranks);
};

/// Returns this rank's place in its tensor group.
model::TensorRank tensor_rank(const grid::ProcessGrid& grid);

/// Throws Error(memory) if `node_ranks` ranks of this node that need these bytes each do not fit
/// into its free memory. `smaller` lists what needs less. Does not check a device's memory.
void require_memory(const memory::Bytes& bytes, Index node_ranks, const std::string& smaller);

/// Returns "12.5 MiB: parameters 8 MiB, activations 4.5 MiB": the total, and the categories in use.
std::string memory_text(const memory::Bytes& bytes);

}  // namespace kzero::engine
