// Host memory of constant size, through which state passes that the host cannot touch: on a device.
#pragma once

#include <cstddef>
#include <span>

namespace kzero::checkpoint {

/// Two slots: one is copied while the host uses the other. One reader or writer of blocks
/// (state_blocks.hpp) at a time goes through it.
class Staging {
 public:
  static constexpr std::size_t slots = 2;

  virtual ~Staging() = default;

  /// The host memory of a slot, of the same size for both.
  virtual std::span<float> slot(std::size_t number) = 0;

  /// Begins to copy values of the device to a part of the slot.
  virtual void bring(std::size_t number, const float* from, std::span<float> to) = 0;

  /// Begins to copy a part of the slot to the device.
  virtual void send(std::size_t number, std::span<const float> from, float* to) = 0;

  /// Waits until all copies from and to the slot are done.
  virtual void wait(std::size_t number) = 0;
};

}  // namespace kzero::checkpoint
