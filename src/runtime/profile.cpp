#include "runtime/profile.hpp"

#include <Kokkos_Core.hpp>

namespace kzero::runtime {

namespace {

namespace tools = Kokkos::Tools::Experimental;

// The callbacks of the loaded tool; ours forward every call to them.
tools::EventSet tool;
bool passes_on = false;  // true while ours are set

void begin_kernel(Kokkos_Profiling_beginFunction next, const char* name, std::uint32_t device,
                  std::uint64_t* id) {
  if (next != nullptr) next(name, device, id);
  begin_span(SpanKind::kernel, name);
}

void end_kernel(Kokkos_Profiling_endFunction next, std::uint64_t id) {
  end_span();
  if (next != nullptr) next(id);
}

void begin_copy(Kokkos::Tools::SpaceHandle to, const char* to_name, const void* to_data,
                Kokkos::Tools::SpaceHandle from, const char* from_name, const void* from_data,
                std::uint64_t bytes) {
  if (tool.begin_deep_copy != nullptr)
    tool.begin_deep_copy(to, to_name, to_data, from, from_name, from_data, bytes);
  if (!timeline_is_recording()) return;
  begin_span(SpanKind::copy, SpanName("copy from {} to {}", from.name, to.name),
             {.bytes = static_cast<Index>(bytes)});
}

void end_copy() {
  end_span();
  if (tool.end_deep_copy != nullptr) tool.end_deep_copy();
}

}  // namespace

bool tool_takes_regions() {
  if (passes_on) return tool.push_region != nullptr;
  return Kokkos::Tools::profileLibraryLoaded();
}

void push_region(const std::string& name) { Kokkos::Profiling::pushRegion(name); }
void pop_region() { Kokkos::Profiling::popRegion(); }

KernelSpans::KernelSpans() {
  tool = tools::get_callbacks();
  passes_on = true;
  tools::EventSet set = tool;
  set.begin_parallel_for = [](const char* name, const std::uint32_t device, std::uint64_t* id) {
    begin_kernel(tool.begin_parallel_for, name, device, id);
  };
  set.end_parallel_for = [](const std::uint64_t id) { end_kernel(tool.end_parallel_for, id); };
  set.begin_parallel_reduce = [](const char* name, const std::uint32_t device, std::uint64_t* id) {
    begin_kernel(tool.begin_parallel_reduce, name, device, id);
  };
  set.end_parallel_reduce = [](const std::uint64_t id) {
    end_kernel(tool.end_parallel_reduce, id);
  };
  set.begin_parallel_scan = [](const char* name, const std::uint32_t device, std::uint64_t* id) {
    begin_kernel(tool.begin_parallel_scan, name, device, id);
  };
  set.end_parallel_scan = [](const std::uint64_t id) { end_kernel(tool.end_parallel_scan, id); };
  set.begin_deep_copy = begin_copy;
  set.end_deep_copy = end_copy;
  tools::set_callbacks(set);
}

KernelSpans::~KernelSpans() {
  tools::set_callbacks(tool);
  passes_on = false;
}

}  // namespace kzero::runtime
