#include "engine/machinery.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "comm/node_window.hpp"
#include "comm/placement.hpp"
#include "grid/agreement.hpp"
#include "runtime/node_memory.hpp"
#include "tensor/gemm.hpp"

namespace kzero::engine {

Machinery::Machinery(const deck::Config& config, Index thread_count, const grid::ProcessGrid& ranks)
    : grid(ranks), threads(thread_count) {
  const deck::CommunicatorKind kind = comm::communicator_of(config);
  grid::collectively(grid.world(), [&] {
    gemm = tensor::make_gemm(config.run.gemm);
    comm::require_communicator(kind, config.zero.reduction == deck::ReductionOrder::library);
  });
  const auto link = [&](comm::Overlap overlap, const grid::Group& group) {
    return comm::make_communicator(kind, overlap, group, traffic, comm::waits_of(config));
  };
  data = link(comm::overlap_of(config), grid.data());
  tensor = link(comm::overlap_alongside(config), grid.tensor());
  sequence = link(comm::overlap_alongside(config), grid.sequence());
}

Machinery::~Machinery() = default;

std::unique_ptr<memory::SharedMemory> Machinery::share(Index bytes,
                                                       const std::string& instead) const {
  if (bytes == 0) return nullptr;
  return std::make_unique<comm::NodeWindow>(grid.node(), bytes, instead);
}

model::TensorRank tensor_rank(const grid::ProcessGrid& grid) {
  return {grid.tensor().rank(), grid.tensor().size()};
}

void require_memory(const memory::Bytes& needed, Index node_ranks, const std::string& smaller) {
  if constexpr (tensor::on_host) {
    Index bytes = 0;
    for (const Index category : needed) bytes += category;
    const std::string shortage = runtime::memory_shortage(bytes, node_ranks);
    KZERO_REQUIRE(shortage.empty(), ExitCode::memory, "a rank needs {}, but {}; {} need less",
                  format_bytes(bytes), shortage, smaller);
  }
}

std::string memory_text(const memory::Bytes& bytes) {
  Index all = 0;
  std::string parts;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    all += bytes[i];
    if (bytes[i] == 0) continue;
    parts += fmt::format("{}{} {}", parts.empty() ? ": " : ", ",
                         memory::name_of(static_cast<memory::Category>(i)), format_bytes(bytes[i]));
  }
  return format_bytes(all) + parts;
}

}  // namespace kzero::engine
