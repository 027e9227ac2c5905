// The update with the optimizer's state in host memory, by the host's cores (zero.offload =
// "host").
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "memory/arenas.hpp"
#include "optim/optimizer.hpp"
#include "runtime/event.hpp"

namespace kzero::optim {

/// Gradients come to the host and parameters go back a constant number of bytes at a time, in two
/// slots: one is copied while the other is computed with.
template <class T>
class CpuOffloadOptimizer {
 public:
  /// Takes about `bytes` of memory for copies from the offloaded category: whole multiples of
  /// param::shard_alignment elements for each of four copies, at least one.
  CpuOffloadOptimizer(memory::Arenas& arenas, Index bytes);

  /// Updates a shard whose state is in host memory, gradient and parameters on the device. Later
  /// work on `exec` sees the parameters.
  void apply(const tensor::Execution& exec, const Optimizer& optimizer, const Update& update,
             const Share<T>& share);

  /// Does the same before hidden matrices are orthogonalized: later work on `exec` sees the
  /// result of MatrixRule::prepare() in Share::prepared on the device.
  void prepare(const tensor::Execution& exec, const MatrixRule& rule, const Update& update,
               const Share<T>& share);

 private:
  using Host = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;

  struct Slot {
    T *gradient = nullptr, *parameters = nullptr;
    runtime::Event fetched, sent;
  };
  static constexpr Index slots = 2;

  Index count_at(const Share<T>& share, Index at) const {
    return std::min(elements_, share.end - share.begin - at);
  }
  void fetch(const Share<T>& share, Index at, Slot& slot);
  template <class Work>
  void pass(const tensor::Execution& exec, const Share<T>& share, T* Slot::*result, T* target,
            const Work& work);

  Index elements_;  // of a slot
  std::array<Slot, slots> slots_;
  runtime::Event ready_;
  std::optional<tensor::Execution> stream_;  // none while measuring
};

}  // namespace kzero::optim
