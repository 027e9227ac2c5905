#include "infer/machinery.hpp"

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "comm/backends.hpp"
#include "grid/agreement.hpp"
#include "runtime/node_memory.hpp"

namespace kzero::infer {

Machinery::Machinery(const deck::Config& config, Index thread_count)
    : threads(thread_count),
      attention(config.run.attention),
      grid(config.grid.data, config.grid.tensor) {
  grid::collectively(grid.world(), [&] {
    gemm = tensor::make_gemm(config.run.gemm);
    comm::require_communicator(config.run.communicator, false);
  });
  const auto kind = config.run.communicator;
  const bool overlaps = comm::moves_by_itself(kind);
  data = comm::make_communicator(kind, overlaps ? comm::Overlap::yes : comm::Overlap::no,
                                 grid.data(), traffic);
  tensor = comm::make_communicator(kind, overlaps ? comm::Overlap::beside : comm::Overlap::no,
                                   grid.tensor(), traffic);
}

void require_memory(const memory::Bytes& planned, Index node_ranks, const std::string& smaller) {
  if constexpr (tensor::on_host) {
    Index bytes = 0;
    for (const Index category : planned) bytes += category;
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

}  // namespace kzero::infer
