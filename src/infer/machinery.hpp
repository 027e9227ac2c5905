// The grid and back ends with which a model computes and communicates on the ranks of a launch.
#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "comm/traffic.hpp"
#include "deck/config.hpp"
#include "grid/process_grid.hpp"
#include "memory/arenas.hpp"
#include "model/model.hpp"
#include "tensor/gemm.hpp"

namespace kzero::infer {

struct Machinery {
  Index threads = 1;  // of this rank
  deck::AttentionKind attention;
  grid::ProcessGrid grid;
  comm::Traffic traffic;
  std::unique_ptr<comm::Communicator> data, tensor;
  std::unique_ptr<tensor::Gemm> gemm;
  memory::Ledger ledger;

  /// Makes the grid and the back ends for a resolved config. Collective over all ranks of the
  /// launch.
  Machinery(const deck::Config& config, Index threads);

  model::TensorRank tensor_rank() const { return {grid.tensor().rank(), grid.tensor().size()}; }
};

/// Throws Error(memory) if `node_ranks` ranks of this node, which need these bytes each, do not fit
/// into its remaining memory. `smaller` tells what needs less. A device's memory is not checked.
void require_memory(const memory::Bytes& bytes, Index node_ranks, const std::string& smaller);

/// "12.5 MiB: parameters 8 MiB, activations 4.5 MiB": the total, and the non-zero categories.
std::string memory_text(const memory::Bytes& bytes);

}  // namespace kzero::infer
