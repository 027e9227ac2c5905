// Reads a metrics file back, launch by launch: a restart compares the steps that earlier launches
// have already computed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::metrics {

struct RecordedStep {
  Index step = 0;
  double loss = 0, grad_norm = 0;  // NaN: not finite
  Index tokens = 0;                // of its batch
};

/// The state after `step` steps, as saved in a checkpoint.
struct RecordedState {
  Index step = 0;
  std::string hash{};
  bool operator==(const RecordedState&) const = default;
};

/// A start record, and the records up to the next one.
struct RecordedLaunch {
  std::vector<std::string> hosts{};  // of each rank
  std::string bits{};                // as in StartRecord; empty in files of older versions
  RecordedState start{};             // without a hash in a launch that began at step 0
  std::vector<RecordedState> saved{};
  std::vector<RecordedStep> steps{};
};

/// Calls use() for each launch, in the order of the file, with those of its steps that are not
/// before `from`. Lines that are not records are skipped: a crash may have truncated one. Keeps one
/// launch in memory at a time. A path that is not a file has no launches. Throws Error(files) if
/// the file cannot be read.
void read_launches(const std::string& path, Index from,
                   const std::function<void(RecordedLaunch&&)>& use);

}  // namespace kzero::metrics
