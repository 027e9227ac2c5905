// Updates parameters on the host's cores, with the optimizer's state in host memory (zero.offload =
// "host").
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "memory/arenas.hpp"
#include "optim/optimizer.hpp"
#include "optim/place.hpp"
#include "runtime/event.hpp"

namespace kzero::optim {

/// Copies gradients to the host and parameters back in parts of constant size. There are two slots:
/// one is copied while the other is updated.
template <class T>
class CpuOffloadOptimizer {
 public:
  /// Allocates about `bytes` in the offloaded category for four copies. Each copy has a multiple of
  /// param::shard_alignment elements, at least one such multiple.
  CpuOffloadOptimizer(memory::Arenas& arenas, Index bytes);

  /// Updates a shard. Its state is in host memory; its gradient and parameters are on the device.
  /// Later work on `exec` sees the parameters.
  void apply(const tensor::Execution& exec, const Optimizer& optimizer, const Update& update,
             const Share<T>& share);

  /// Does the same for MatrixRule::prepare(). Later work on `exec` sees the result in
  /// Share::prepared on the device.
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
