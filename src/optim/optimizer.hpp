// AdamW on flat ranges: master weights and moments in fp32, whatever the precision of the model. It
// acts on the ranges it is given and does not know how they came to be this rank's.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "deck/config.hpp"
#include "memory/arenas.hpp"
#include "param/flat_layout.hpp"
#include "runtime/event.hpp"
#include "tensor/view.hpp"

namespace kzero::optim {

/// fp32 state of elements [0, n) of a unit, or of what a rank holds of it.
struct State {
  float* master = nullptr;
  float* first = nullptr;
  float* second = nullptr;
};

/// One unit's share of an update: parts of the unit that start at `begin` of it.
template <class T>
struct Share {
  const param::UnitSpec* spec = nullptr;
  const param::UnitLayout* layout = nullptr;
  Index begin = 0, end = 0;     // of the unit
  const T* gradient = nullptr;  // at begin
  T* parameters = nullptr;      // at begin
  State state;                  // at begin
};

/// What a step multiplies gradients with: unscaling by the loss scale, and clipping.
double gradient_scale(double norm, double clip, double loss_scale);

/// One step of the optimizer.
struct Update {
  double lr = 0;
  Index number = 1;           // counted from 1, for the moments' bias correction
  double gradient_scale = 1;  // see gradient_scale()
};

/// Updates a share in place, in device memory.
template <class T>
void apply(const tensor::Execution& exec, const deck::Optimizer& optimizer, const Update& update,
           const Share<T>& share);

/// The same with the state in host memory, updated by the host's cores (zero.offload = "host"):
/// gradients come to the host and parameters go back a constant number of bytes at a time, in two
/// slots: one is copied while the other is computed with.
template <class T>
class CpuOffloadOptimizer {
 public:
  /// Takes `bytes` of memory for copies from the offloaded category.
  CpuOffloadOptimizer(memory::Arenas& arenas, Index bytes);

  /// share.state lies in host memory, gradient and parameters on the device. What comes next on
  /// `exec` sees the parameters.
  void apply(const tensor::Execution& exec, const deck::Optimizer& optimizer, const Update& update,
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

  Index elements_;  // of a slot
  std::array<Slot, slots> slots_;
  runtime::Event ready_;
  std::optional<tensor::Execution> stream_;  // none while measuring
};

}  // namespace kzero::optim
