#include "checkpoint/format/runs.hpp"

namespace kzero::checkpoint {

std::vector<Run> compact(const std::vector<Range>& ranges) {
  std::vector<Run> runs;
  for (const Range& range : ranges) {
    if (!runs.empty() && runs.back().count == range.count) {
      Run& run = runs.back();
      const Index distance = range.begin - run.begin;
      if (run.repeat == 1) run.stride = distance;
      if (distance == run.stride * run.repeat) {
        ++run.repeat;
        continue;
      }
    }
    runs.push_back({range.begin, range.count, range.count, 1});
  }
  return runs;
}

std::vector<Range> expand(const std::vector<Run>& runs) {
  std::vector<Range> ranges;
  for (const Run& run : runs) {
    for (Index i = 0; i < run.repeat; ++i)
      ranges.push_back({run.begin + i * run.stride, run.count});
  }
  return ranges;
}

Index elements_of(const std::vector<Run>& runs) {
  Index sum = 0;
  for (const Run& run : runs) sum += run.count * run.repeat;
  return sum;
}

}  // namespace kzero::checkpoint
