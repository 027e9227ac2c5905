// The pinned host memory through which the optimizer's state on a device goes to checkpoints and
// comes from them.
#pragma once

#include <array>
#include <span>

#include "base/types.hpp"
#include "checkpoint/format/staging.hpp"
#include "runtime/event.hpp"

namespace kzero::engine {

/// Copies on a stream of its own, which knows of no other stream: before a state is read the host
/// must have waited for what computes it.
class StateStaging : public checkpoint::Staging {
 public:
  /// The elements of a run's staging, 16 MiB whatever the model: a copy of a slot takes longer than
  /// its launch by far.
  static constexpr Index elements = Index{4} << 20;

  /// `room` is pinned host memory, half of which is a slot, and outlives the object. Without room
  /// `elements` are allocated at the first use: runs with checkpoints give what their plan counts.
  explicit StateStaging(std::span<float> room);

  std::span<float> slot(std::size_t number) override;
  void bring(std::size_t number, const float* from, std::span<float> to) override;
  void send(std::size_t number, std::span<const float> from, float* to) override;
  void wait(std::size_t number) override;

 private:
  std::span<float> room_;
  Kokkos::View<float*, runtime::HostMemory> own_room_;
  runtime::Execution stream_;
  std::array<runtime::Event, slots> copied_;
};

}  // namespace kzero::engine
