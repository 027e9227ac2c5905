// The words every folder shares: 64-bit counts and the element types that are stored and sent.
#pragma once

#include <cstdint>
#include <string_view>

namespace kzero {

/// Counts and positions; elements unless the name says bytes.
using Index = std::int64_t;

/// Token ids, as the kernels read them.
using Token = std::int32_t;

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

/// Where part `i` begins of `total` things cut into `parts`: as equal as can be, the first ones
/// never smaller than later ones. part_begin(total, parts, parts) is their end.
constexpr Index part_begin(Index total, Index parts, Index i) {
  const Index rest = total % parts;
  return total / parts * i + (i < rest ? i : rest);
}
constexpr Index part_size(Index total, Index parts, Index i) {
  return part_begin(total, parts, i + 1) - part_begin(total, parts, i);
}

}  // namespace kzero
