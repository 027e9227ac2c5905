// Host memory for copies of state that is on a device, where the host cannot access it.
#pragma once

#include <cstddef>
#include <span>

namespace kzero::checkpoint {

/// Two slots: one is copied while the host uses the other. Only one reader or writer of blocks
/// (state_blocks.hpp) may use it at a time.
class Staging {
 public:
  static constexpr std::size_t slots = 2;

  virtual ~Staging() = default;

  /// Returns the host memory of a slot. Both slots have the same, constant size.
  virtual std::span<float> slot(std::size_t number) = 0;

  /// Begins to copy values from the device to a part of the slot.
  virtual void bring(std::size_t number, const float* from, std::span<float> to) = 0;

  /// Begins to copy a part of the slot to the device.
  virtual void send(std::size_t number, std::span<const float> from, float* to) = 0;

  /// Waits until all copies from and to the slot are done.
  virtual void wait(std::size_t number) = 0;
};

}  // namespace kzero::checkpoint
