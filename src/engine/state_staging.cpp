#include "engine/state_staging.hpp"

#include "runtime/pinned_copy.hpp"

namespace kzero::engine {

StateStaging::StateStaging(std::span<float> room) : room_(room), stream_(runtime::make_stream()) {}

std::span<float> StateStaging::slot(std::size_t number) {
  if (room_.empty()) {
    own_room_ = decltype(own_room_)("kzero::engine::host_staging", elements);
    room_ = {own_room_.data(), own_room_.size()};
  }
  const std::size_t size = room_.size() / slots;
  return room_.subspan(number * size, size);
}

void StateStaging::bring(std::size_t number, const float* from, std::span<float> to) {
  runtime::copy_to_host(stream_, from, to.data(), std::ssize(to));
  copied_[number].record(stream_);
}

void StateStaging::send(std::size_t number, std::span<const float> from, float* to) {
  runtime::copy_to_device(stream_, from.data(), to, std::ssize(from));
  copied_[number].record(stream_);
}

void StateStaging::wait(std::size_t number) { copied_[number].synchronize(); }

}  // namespace kzero::engine
