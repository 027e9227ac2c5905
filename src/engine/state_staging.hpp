// Pinned host memory for copying the optimizer's state from a device to checkpoints and back.
#pragma once

#include <array>
#include <span>

#include "base/types.hpp"
#include "checkpoint/format/staging.hpp"
#include "runtime/event.hpp"

namespace kzero::engine {

/// Copies on its own stream, which is not ordered with other streams. Before a state is read, the
/// host must have waited for its computation.
class StateStaging : public checkpoint::Staging {
 public:
  /// The number of elements of a run's staging (16 MiB). The size does not depend on the model,
  /// because copying a slot already takes much longer than launching the copy.
  static constexpr Index elements = Index{4} << 20;

  /// `room` is pinned host memory for the two slots, and must outlive the object. Runs with
  /// checkpoints pass planned memory. If `room` is empty, the first use allocates `elements`.
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
