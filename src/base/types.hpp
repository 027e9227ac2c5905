// Types that every folder uses: 64-bit counts, and the element types that are stored and sent.
#pragma once

#include <cstdint>
#include <string_view>

namespace kzero {

/// A count or position, in elements unless the name says bytes.
using Index = std::int64_t;

/// Token ids as the kernels read them.
using Token = std::int32_t;

/// The target of a position that predicts nothing: its loss and its gradient are 0.
inline constexpr Token no_target = -1;

enum class Dtype { fp32, bf16, fp16 };

constexpr Index bytes_of(Dtype dtype) { return dtype == Dtype::fp32 ? 4 : 2; }

constexpr std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return "bf16";
    case Dtype::fp16:
      return "fp16";
    default:
      return "fp32";
  }
}

constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
constexpr Index round_up(Index a, Index multiple) { return ceil_div(a, multiple) * multiple; }

/// The beginning of part `i` when `total` items are split into `parts`: part sizes differ by at
/// most one, and the larger parts come first. part_begin(total, parts, parts) is `total`.
constexpr Index part_begin(Index total, Index parts, Index i) {
  const Index rest = total % parts;
  return total / parts * i + (i < rest ? i : rest);
}
constexpr Index part_size(Index total, Index parts, Index i) {
  return part_begin(total, parts, i + 1) - part_begin(total, parts, i);
}

}  // namespace kzero
