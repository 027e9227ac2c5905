#include "kernels/host/pairs.hpp"

#include <utility>

namespace kzero::kernels {

namespace {

/// Every second lane of two vectors, from lane `first` on.
template <std::size_t first, std::size_t... lane>
HostVector every_second(HostVector a, HostVector b, std::index_sequence<lane...>) {
  return __builtin_shufflevector(a, b, (2 * lane + first)...);
}

/// The lanes of two vectors alternately, from lane `first` of each on.
template <std::size_t first, std::size_t... lane>
HostWords alternate(HostWords a, HostWords b, std::index_sequence<lane...>) {
  return __builtin_shufflevector(a, b, (first + lane / 2 + lane % 2 * host_lanes)...);
}

}  // namespace

void round_row(const float* from, Index count, Bf16Pair* to) {
  for (Index j = 0; j < count; j += 2 * host_lanes, to += host_lanes) {
    const HostVector a = load_vector(from + j), b = load_vector(from + j + host_lanes);
#if defined(__AVX512BF16__)
    const auto both = _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(a));
    store_vector(to, reinterpret_cast<HostWords>(both));
#else
    constexpr std::make_index_sequence<host_lanes> all;
    store_vector(to, bf16_words(every_second<0>(a, b, all)) | bf16_words(every_second<1>(a, b, all))
                                                                  << 16U);
#endif
  }
}

void round_rows(const float* first, const float* second, Index count, Bf16Pair* to) {
  for (Index j = 0; j < count; j += host_lanes) {
    HostWords pairs = bf16_words(load_vector(first + j));
    if (second) pairs |= bf16_words(load_vector(second + j)) << 16U;
    store_vector(to + j, pairs);
  }
}

void interleave(const Bf16Pair* first, const Bf16Pair* second, Index count, Bf16Pair* to) {
  constexpr std::make_index_sequence<host_lanes> all;
  for (Index j = 0; j < count; j += 2 * host_lanes, first += host_lanes, second += host_lanes) {
    const HostWords a = load_vector(first), b = load_vector(second);
    const HostWords even = (a & 0xFFFFU) | b << 16U, odd = a >> 16U | (b & 0xFFFF0000U);
    store_vector(to + j, alternate<0>(even, odd, all));
    store_vector(to + j + host_lanes, alternate<host_lanes / 2>(even, odd, all));
  }
}

}  // namespace kzero::kernels
