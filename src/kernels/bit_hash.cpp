#include "kernels/bit_hash.hpp"

#include <cstring>
#include <type_traits>

#include "base/philox.hpp"
#include "kernels/row.hpp"

namespace kzero::kernels {

namespace {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>;

template <class T>
constexpr int per_word = 8 / sizeof(T);

/// Number of words that a host thread hashes at a time, from a copy in its first-level cache.
constexpr Index words_at_once = 512;

/// The bits of a value. All NaNs have the same bits.
template <class T>
KOKKOS_INLINE_FUNCTION Bits<T> bits_of(T value) {
  constexpr std::uint32_t infinity = std::is_same_v<T, float>  ? 0x7F800000U
                                     : std::is_same_v<T, bf16> ? 0x7F80U
                                                               : 0x7C00U;
  constexpr auto all = static_cast<Bits<T>>(~Bits<T>{0});
  const auto bits = Kokkos::bit_cast<Bits<T>>(value);
  return (bits & (all >> 1U)) > infinity ? all : bits;
}

KOKKOS_INLINE_FUNCTION std::uint64_t mix(std::uint64_t word, Index place) {
  constexpr std::uint64_t step_of_place = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
  return mixed(word ^ static_cast<std::uint64_t>(place + 1) * step_of_place);
}

/// The word of up to `count` elements. The first element is in the lowest bits.
template <class T>
KOKKOS_INLINE_FUNCTION std::uint64_t word_of(const T* x, Index count) {
  std::uint64_t word = 0;
  for (int e = 0; e < per_word<T> && e < count; ++e)
    word |= static_cast<std::uint64_t>(bits_of(x[e])) << (8 * sizeof(T) * e);
  return word;
}

/// Sums the mixes of at most words_at_once words, from number `first` on.
template <class T>
std::uint64_t host_sum_of_mixes(const T* x, Index count, Index first) {
  const Index begin = first * per_word<T>;
  const Index elements = std::min(words_at_once * per_word<T>, count - begin);
  const Index words = ceil_div(elements, Index{per_word<T>});
  alignas(64) Bits<T> bits[words_at_once * per_word<T>];
  detail::host_for(elements, [&](Index i) { bits[i] = bits_of(x[begin + i]); });
  for (Index i = elements; i < words * per_word<T>; ++i) bits[i] = 0;
  std::uint64_t word[words_at_once];
  std::memcpy(word, bits, static_cast<std::size_t>(words) * sizeof(std::uint64_t));
  std::uint64_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Index i = 0; i < words; ++i) sum += mix(word[i], first + i);
  return sum;
}

// Kokkos does not wait for a reduction whose result is a view.
using Result = Kokkos::View<std::uint64_t, tensor::Memory, Kokkos::MemoryUnmanaged>;

template <class T>
void hash_on_host(const Execution& exec, const T* x, Index count, const Result& hash) {
  const Index words = ceil_div(count, Index{per_word<T>});
  Kokkos::parallel_reduce(
      "kzero::kernels::hash_bits", tensor::Range(exec, 0, ceil_div(words, words_at_once)),
      [=](Index block, std::uint64_t& sum) {
        sum += host_sum_of_mixes(x, count, block * words_at_once);
      },
      hash);
}

template <class T>
void hash_on_device(const Execution& exec, const T* x, Index count, const Result& hash) {
  const Index words = ceil_div(count, Index{per_word<T>});
  Kokkos::parallel_reduce(
      "kzero::kernels::hash_bits", tensor::Range(exec, 0, words),
      KOKKOS_LAMBDA(Index i, std::uint64_t & sum) {
        const Index begin = i * per_word<T>;
        sum += mix(word_of(x + begin, count - begin), i);
      },
      hash);
}

}  // namespace

template <class T>
void hash_bits(const Execution& exec, Vector<const T> x, std::uint64_t* hash) {
  const Index count = x.extent(0);
  if constexpr (tensor::on_host) {
    hash_on_host(exec, x.data(), count, Result(hash));
  } else {
    hash_on_device(exec, x.data(), count, Result(hash));
  }
}

#define KZERO_INSTANTIATE(T) \
  template void hash_bits<T>(const Execution&, Vector<const T>, std::uint64_t*);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
