// Memory that the host cannot access, and staging that copies as late as a device's streams allow.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <new>
#include <span>
#include <vector>

#include "checkpoint/format/staging.hpp"
#include "checkpoint/format/state_shard.hpp"

namespace kzero::checkpoint {

/// Addresses for a device's values. Using one ends the program with a signal.
class FarMemory {
 public:
  FarMemory()
      : begin_(
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~FarMemory() { munmap(begin_, bytes); }
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;

  /// Returns an address for `count` values, which are zero.
  std::span<float> take(std::size_t count) {
    const std::size_t at = values_.size();
    values_.resize(at + count);
    return {static_cast<float*>(begin_) + at, count};
  }

  /// Returns the values at an address.
  float* values(const float* address) {
    return values_.data() + (address - static_cast<const float*>(begin_));
  }

 private:
  static constexpr std::size_t bytes = std::size_t{1} << 30;
  void* begin_;
  std::vector<float> values_;
};

/// Copies in the order of the calls, and only when somebody waits. Until then a slot that receives
/// values holds NaN.
class LateStaging : public Staging {
 public:
  LateStaging(FarMemory& far, std::size_t elements_of_a_slot)
      : far_(far), size_(elements_of_a_slot), room_(slots * size_, -3.0F) {}

  std::span<float> slot(std::size_t number) override {
    return std::span(room_).subspan(number * size_, size_);
  }
  void bring(std::size_t number, const float* from, std::span<float> to) override {
    expect_within(number, to);
    std::ranges::fill(to, std::nanf(""));
    copies_.push_back({number, from, to.data(), to.size(), true});
  }
  void send(std::size_t number, std::span<const float> from, float* to) override {
    expect_within(number, from);
    copies_.push_back({number, from.data(), to, from.size(), false});
  }
  void wait(std::size_t number) override {
    const auto last = std::find_if(copies_.rbegin(), copies_.rend(),
                                   [&](const Copy& copy) { return copy.slot == number; });
    for (auto left = copies_.rend() - last; left > 0; --left) {
      const Copy copy = copies_.front();
      copies_.pop_front();
      const float* from = copy.to_host ? far_.values(copy.from) : copy.from;
      std::copy_n(from, copy.count, copy.to_host ? copy.to : far_.values(copy.to));
    }
  }

  /// The number of copies that nobody has waited for.
  std::size_t under_way() const { return copies_.size(); }

 private:
  struct Copy {
    std::size_t slot;
    const float* from;
    float* to;
    std::size_t count;
    bool to_host;
  };

  void expect_within(std::size_t number, std::span<const float> part) {
    const std::span<const float> all = slot(number);
    EXPECT_GE(part.data(), all.data());
    EXPECT_LE(part.data() + part.size(), all.data() + all.size());
  }

  FarMemory& far_;
  std::size_t size_;
  std::vector<float> room_;
  std::deque<Copy> copies_;
};

/// Returns the shards with their values in far memory.
inline std::vector<StateShard> moved_away(std::vector<StateShard> shards, FarMemory& far,
                                          Staging& staging) {
  for (StateShard& shard : shards) {
    for (StateValues& array : shard.arrays) {
      const std::span<float> away = far.take(array.values.size());
      std::ranges::copy(array.values, far.values(away.data()));
      array.values = away;
    }
    shard.staging = &staging;
  }
  return shards;
}

/// Copies the values of `away` to `shards`, which have the same structure.
inline void bring_back(const std::vector<StateShard>& away, FarMemory& far,
                       const std::vector<StateShard>& shards) {
  for (std::size_t s = 0; s < shards.size(); ++s) {
    for (std::size_t a = 0; a < shards[s].arrays.size(); ++a) {
      const std::span<float> values = away[s].arrays[a].values;
      std::copy_n(far.values(values.data()), values.size(), shards[s].arrays[a].values.data());
    }
  }
}

}  // namespace kzero::checkpoint
