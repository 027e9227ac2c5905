// The dynamic communication schedule (arXiv 1910.02054, section 7.2.2), computed from the model's
// trace before the first step. The schedule fixes when each unit is gathered and released, and
// where gradients are written and complete. The run, the memory plan and the expected traffic
// follow it.
#pragma once

#include <vector>

#include "base/types.hpp"
#include "param/flat_layout.hpp"
#include "param/trace.hpp"
#include "zero/stage.hpp"

namespace kzero::zero {

// Memory for values of known lifetimes. All offsets are computed before the first step, so memory
// cannot fragment (the paper's M_D, section 6.3).

/// A value of `elements` that is needed from operation `first` to operation `last`, inclusive.
struct Lifetime {
  Index unit = 0;
  Index first = 0, last = 0;
  Index elements = 0;
  Index offset = 0;  // set by assign_offsets()
};

/// Assigns offsets so that no two values share an element at the same time. Places the largest
/// value first. Each value gets the lowest offset that is free during its lifetime. Rounds
/// `elements` up to param::shard_alignment. Returns the total number of elements.
Index assign_offsets(std::vector<Lifetime>& values);

/// A unit and its offset in the memory of gathered units or of gradients being written.
struct BufferOffset {
  Index unit = 0;
  Index offset = 0;  // elements
};

/// The communication before and after one operation of a micro-batch.
struct ScheduleStep {
  std::vector<BufferOffset> gathers;  // started before it: first its own, then prefetched ones
  std::vector<Index> needs;           // units that it reads, which must have arrived
  std::vector<Index> releases;        // gathered units to release after it
  std::vector<BufferOffset> targets;  // gradients that it is the first to write
  std::vector<Index> complete;        // gradients that it is the last to write
};

struct ScheduleOptions {
  Stage stage;
  Index prefetch_units = 1;  // gathers start this many reading operations early
  bool overlap = true;       // reductions finish one operation later
  bool has_targets = false;  // gradients are written to memory of their own in every stage
};

class Schedule {
 public:
  Schedule(const param::Trace& trace, const param::FlatLayout& layout,
           const ScheduleOptions& options);

  const param::Trace& trace() const { return trace_; }
  const std::vector<ScheduleStep>& steps() const { return steps_; }

  /// Elements of memory for gathered units and for gradients being written. 0 if nothing is
  /// gathered, and if gradients are replicated and written where they stay.
  Index gathered_elements() const { return gathered_elements_; }
  Index target_elements() const { return target_elements_; }

  /// Elements, including padding, of all units gathered in a micro-batch.
  Index gathers() const { return gathers_; }

 private:
  void schedule_gathers(const param::FlatLayout& layout, Index prefetch_units);
  void schedule_gradients(const param::FlatLayout& layout, const ScheduleOptions& options);

  param::Trace trace_;
  std::vector<ScheduleStep> steps_;
  Index gathered_elements_ = 0;
  Index target_elements_ = 0;
  Index gathers_ = 0;
};

}  // namespace kzero::zero
