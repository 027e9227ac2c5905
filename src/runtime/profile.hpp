// Regions of a run for Kokkos' profiling tools and for the run's own time line, in addition to the
// kernels that both see by themselves.
#pragma once

#include <string>
#include <string_view>

#include "base/timeline.hpp"

namespace kzero::runtime {

/// Returns whether a Kokkos tool (KOKKOS_TOOLS_LIBS) records regions.
bool tool_takes_regions();

/// Begins a region of the tool, and ends the one that began last.
void push_region(const std::string& name);
void pop_region();

/// A region from construction to destruction, named by name(). Without a tool and a time line,
/// name() is not called.
class ProfileRegion {
 public:
  template <class F>
  explicit ProfileRegion(const F& name, SpanKind kind = SpanKind::phase, const SpanWork& work = {})
      : is_open_(tool_takes_regions()), span_(kind, name, work) {
    if (is_open_) push_region(std::string(std::string_view(name())));
  }
  ~ProfileRegion() {
    if (is_open_) pop_region();
  }
  ProfileRegion(const ProfileRegion&) = delete;
  ProfileRegion& operator=(const ProfileRegion&) = delete;

  /// Returns whether the run's time line records the region: device work must then end before the
  /// region does.
  bool is_recorded() const { return span_.is_open(); }

 private:
  bool is_open_;
  TimelineSpan span_;
};

/// Records the kernels and copies of Kokkos in the time line for as long as the object lives. A
/// tool that was loaded before continues to see them. Meanwhile Kokkos fences before and after each
/// kernel, so that each device kernel is timed separately. Construct and destroy the object while
/// no thread launches kernels.
class KernelSpans {
 public:
  KernelSpans();
  ~KernelSpans();
  KernelSpans(const KernelSpans&) = delete;
  KernelSpans& operator=(const KernelSpans&) = delete;
};

}  // namespace kzero::runtime
