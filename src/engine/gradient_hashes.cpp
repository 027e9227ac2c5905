#include "engine/gradient_hashes.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/bit_hash.hpp"
#include "runtime/pinned_copy.hpp"

namespace kzero::engine {

GradientHashes::GradientHashes(memory::Arenas& arenas, Index rounds, Index units)
    : rounds_(rounds), units_(units) {
  device_ = arenas.take<std::uint64_t>(memory::Category::io, words());
  host_ =
      tensor::on_host ? device_ : arenas.take<std::uint64_t>(memory::Category::offloaded, words());
}

template <class T>
void GradientHashes::take_gradient(const tensor::Execution& exec, Index computation, Index round,
                                   Index unit, tensor::Vector<const T> gradient) const {
  kernels::hash_bits<T>(exec, gradient, device_ + begin(computation, round) + 1 + unit);
}

void GradientHashes::take_loss(const tensor::Execution& exec, Index computation, Index round,
                               const double* loss) const {
  const tensor::Vector<std::uint64_t> word(device_ + begin(computation, round), 1);
  const tensor::Vector<const std::uint64_t> bits(reinterpret_cast<const std::uint64_t*>(loss), 1);
  Kokkos::deep_copy(exec, word, bits);
}

void GradientHashes::read(const tensor::Execution& exec) const {
  if (host_ != device_) runtime::copy_to_host(exec, device_, host_, words());
}

std::uint64_t GradientHashes::loss(Index computation, Index round) const {
  const std::uint64_t bits = host_[begin(computation, round)];
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return std::isnan(std::bit_cast<double>(bits)) ? std::bit_cast<std::uint64_t>(nan) : bits;
}

std::span<const std::uint64_t> GradientHashes::gradients(Index computation, Index round) const {
  return {host_ + begin(computation, round) + 1, static_cast<std::size_t>(units_)};
}

#define KZERO_INSTANTIATE(T)                                                                    \
  template void GradientHashes::take_gradient<T>(const tensor::Execution&, Index, Index, Index, \
                                                 tensor::Vector<const T>) const;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::engine
