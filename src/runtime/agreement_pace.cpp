#include "runtime/agreement_pace.hpp"

#include <algorithm>

namespace kzero::runtime {

namespace {

constexpr Index time_range = Index{1} << 40;  // microseconds, beyond any round

}  // namespace

Index AgreementPace::pack(Index wish, Clock::time_point now) const {
  const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(now - last_);
  return wish * time_range + std::clamp<Index>(passed.count(), 1, time_range - 1);
}

Index AgreementPace::unpack(Index agreed, Clock::time_point now) {
  constexpr Index target = std::chrono::microseconds(min_interval).count();
  const Index passed = agreed % time_range;
  const Index fitting = static_cast<Index>(
      static_cast<double>(rounds_) * static_cast<double>(target) / static_cast<double>(passed));
  interval_ = std::clamp<Index>(fitting, 1, 2 * interval_);
  rounds_ = 0;
  last_ = now;
  return agreed / time_range;
}

}  // namespace kzero::runtime
