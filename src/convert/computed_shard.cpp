#include "convert/computed_shard.hpp"

#include <sys/mman.h>

#include "base/error.hpp"
#include "param/state_array.hpp"

namespace kzero::convert {

namespace {

constexpr std::size_t slot_elements = std::size_t{1} << 20;

}  // namespace

ComputedMemory::ComputedMemory(Index largest_elements) {
  const auto bytes = static_cast<std::size_t>(largest_elements) * sizeof(float);
  void* const begin =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  KZERO_REQUIRE(begin != MAP_FAILED, ExitCode::memory,
                "the system has no addresses for a parameter of {} bytes", bytes);
  addresses_ = {begin, [bytes](void* at) { munmap(at, bytes); }};
  for (std::vector<float>& one : slots_) one.resize(slot_elements);
}

checkpoint::StateShard ComputedShard::shard() {
  const Index elements = parameter_.elements();
  const std::span<float> values(memory_.addresses(), static_cast<std::size_t>(elements));
  return {parameter_.name, {{0, elements}}, {{param::master_weights, values}}, this};
}

void ComputedShard::bring(std::size_t /*number*/, const float* from, std::span<float> to) {
  source_.read(parameter_, {from - memory_.addresses(), std::ssize(to)}, to);
}

void ComputedShard::send(std::size_t /*number*/, std::span<const float> /*from*/, float* /*to*/) {
  fail(ExitCode::other, "internal error: values that are computed cannot be set");
}

}  // namespace kzero::convert
