#include "probe/product_bits.hpp"

#include <algorithm>
#include <array>

#include "base/checksum.hpp"
#include "engine/product.hpp"

namespace kzero::probe {

namespace {

constexpr Index widest_rows = 512, widest_columns = 4096;  // of products whose bits are compared

}  // namespace

std::string product_bits(tensor::Gemm& gemm, const deck::Config& config) {
  const tensor::Execution exec;
  const Index rows = std::min(config.train.micro_batch * config.model.sequence, widest_rows);
  const Index width = std::min(config.model.hidden, widest_columns);
  const Index wide = std::min(4 * config.model.hidden, widest_columns);
  const Index vocabulary = std::min(config.model.vocab, widest_columns);
  const engine::ProductShape shapes[] = {
      {rows, wide, width}, {rows, width, wide}, {width, wide, rows}, {rows, vocabulary, width}};
  std::array<std::uint64_t, std::size(shapes)> digests{};
  for (std::size_t i = 0; i < std::size(shapes); ++i) {
    const engine::Product product(exec, shapes[i], config.train.precision);
    product.run(gemm);
    digests[i] = product.digest();
  }
  return format_checksum(checksum(std::as_bytes(std::span(digests))));
}

}  // namespace kzero::probe
