#include "data/goldfish.hpp"

#include <bit>
#include <limits>

#include "base/checksum.hpp"

namespace kzero::data {

static_assert(std::endian::native == std::endian::little);

bool is_dropped(const Goldfish& goldfish, std::span<const Token> before) {
  const auto limit =
      std::numeric_limits<std::uint64_t>::max() / static_cast<std::uint64_t>(goldfish.k);
  return checksum(std::as_bytes(before)) < limit;
}

Index drop_targets(const Goldfish& goldfish, std::span<const Token> inputs,
                   std::span<const std::int32_t> begin, std::span<Token> targets) {
  Index left = 0;
  for (Index i = 0; i < std::ssize(targets); ++i) {
    const Index first = begin.empty() ? 0 : begin[i];
    const Index from = i + 1 - goldfish.h;
    if (targets[i] != no_target && from >= first &&
        is_dropped(goldfish, inputs.subspan(from, goldfish.h)))
      targets[i] = no_target;
    left += targets[i] != no_target ? 1 : 0;
  }
  return left;
}

}  // namespace kzero::data
