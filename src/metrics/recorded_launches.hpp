// Reads a metrics file back, launch by launch: what a restart needs of the steps that earlier
// launches have computed already.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::metrics {

struct RecordedStep {
  Index step = 0;
  double loss = 0, grad_norm = 0;  // NaN: was not finite
};

/// The state after `step` steps, as a checkpoint had it.
struct RecordedState {
  Index step = 0;
  std::string hash{};
  bool operator==(const RecordedState&) const = default;
};

/// A start record with the records up to the next one.
struct RecordedLaunch {
  std::vector<std::string> hosts{};  // of each rank
  std::string bits{};                // as in StartRecord; empty in files of older versions
  RecordedState start{};             // its hash is empty in a launch that began at step 0
  std::vector<RecordedState> saved{};
  std::vector<RecordedStep> steps{};
};

/// Calls use() for each launch in the file, in its order, with those of its steps that are not
/// before `from`. Lines that are no records are passed over: a crash may have truncated one. Holds
/// one launch at a time. A path that is no file has no launches. Throws Error(files) if it cannot
/// be read.
void read_launches(const std::string& path, Index from,
                   const std::function<void(RecordedLaunch&&)>& use);

}  // namespace kzero::metrics
