// In place of src/runtime/device_*.cpp. Compiled without ThreadSanitizer's instructions.
#include "stream_order/streams.hpp"

#include <execinfo.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "runtime/event.hpp"
#include "stream_order/device_memory.hpp"
#include "stream_order/hidden_lock.hpp"
#include "stream_order/omissions.hpp"
#include "stream_order/serial_streams.hpp"

extern "C" {
void __tsan_func_entry(void* caller);
void __tsan_func_exit();
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
int __tsan_get_report_mop(void* report, unsigned long number, int* thread, void** address,
                          int* bytes, int* is_write, int* is_atomic, void** trace,
                          unsigned long frames);
}

namespace kzero::stream_order {

namespace {

constexpr unsigned without_order = __tsan_switch_to_fiber_no_sync;
constexpr int max_frames = 24;
constexpr int own_frames = 3;  // of these, this file's and the library's

struct Stream {
  void* fiber;
  std::mutex* in_order;  // the back end's own, which its kernels and fences take
  char name[24];
};

struct Streams {
  HiddenLock lock;
  std::map<const void*, std::uint32_t> numbers;
  std::deque<Stream> all;
};

Streams& streams() {
  static auto* const streams = new Streams;  // outlives every destructor
  return *streams;
}

std::uint32_t number_of_instance(Kokkos::Impl::SerialInternal* instance) {
  Streams& s = streams();
  const std::lock_guard lock(s.lock);
  const auto [found, is_new] = s.numbers.emplace(instance, s.all.size());
  if (is_new) {
    Stream& stream = s.all.emplace_back();
    stream = {__tsan_create_fiber(0), &instance->m_instance_mutex, {}};
    std::snprintf(stream.name, sizeof stream.name, "stream %u", found->second);
    __tsan_set_fiber_name(stream.fiber, stream.name);
  }
  return found->second;
}

Stream& stream_at(std::uint32_t number) {
  Streams& s = streams();
  const std::lock_guard lock(s.lock);
  return s.all[number];
}

// This thread of the host before it continued as a stream, with the calls that led there, which
// ThreadSanitizer shows for accesses.
thread_local void* host = nullptr;
thread_local int frames = 0;
thread_local const char* running = "the host";
std::atomic<int> report_count = 0;

/// Goes on as a stream, which sees what the host has done: a launch.
void launch(std::uint32_t number, const char* label) {
  void* calls[max_frames];
  frames = std::max(0, backtrace(calls, max_frames) - own_frames);
  host = __tsan_get_current_fiber();
  running = label;
  __tsan_switch_to_fiber(stream_at(number).fiber, 0);
  for (int i = frames - 1; i >= 0; --i) __tsan_func_entry(calls[i + own_frames]);
}

/// Goes on as the host, which does not wait for the stream.
void leave() {
  for (; frames > 0; --frames) __tsan_func_exit();
  __tsan_switch_to_fiber(host, without_order);
  running = "the host";
}

/// Calls f(its lock) as the stream, neither the stream nor the host being ordered by that.
template <class F>
void as_stream(const runtime::Execution& stream, const F& f) {
  void* const caller = __tsan_get_current_fiber();
  const Stream& own = stream_at(number_of(stream));
  __tsan_switch_to_fiber(own.fiber, without_order);
  f(*own.in_order);
  __tsan_switch_to_fiber(caller, without_order);
}

// Kernels: the identifier is that of the stream, or 0 for the host's own loops, which run as the
// host.
void begin_kernel(const char* label, std::uint32_t device, std::uint64_t* id) {
  using namespace Kokkos::Tools::Experimental;
  const ExecutionSpaceIdentifier space = identifier_from_devid(device);
  *id = space.type == DeviceType::Serial ? 1 : 0;
  if (*id != 0) launch(space.instance_id, label);
}

void end_kernel(std::uint64_t id) {
  if (id != 0) leave();
}

/// A fence takes the lock that the stream's work had, which orders the two.
void begin_fence(const char* label, std::uint32_t, std::uint64_t* id) {
  *id = is_left_out(label) ? 1 : 0;
  if (*id != 0) AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

void end_fence(std::uint64_t id) {
  if (id != 0) AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

void allocated(Kokkos_Profiling_SpaceHandle, const char* label, const void* data, std::uint64_t) {
  name_memory(data, label);
}

// Set before Kokkos is initialized. Tools that do not say otherwise make it fence around kernels.
[[maybe_unused]] const bool is_set = [] {
  using namespace Kokkos::Tools::Experimental;
  set_request_tool_settings_callback([](std::uint32_t, Kokkos_Tools_ToolSettings* settings) {
    settings->requires_global_fencing = false;
  });
  set_begin_parallel_for_callback(begin_kernel);
  set_end_parallel_for_callback(end_kernel);
  set_begin_parallel_reduce_callback(begin_kernel);
  set_end_parallel_reduce_callback(end_kernel);
  set_begin_parallel_scan_callback(begin_kernel);
  set_end_parallel_scan_callback(end_kernel);
  set_begin_fence_callback(begin_fence);
  set_end_fence_callback(end_fence);
  set_allocate_data_callback(allocated);
  return true;
}();

}  // namespace

int reports() { return report_count; }

std::uint32_t number_of(const Kokkos::Serial& stream) noexcept {
  return number_of_instance(stream.impl_internal_space_instance());
}

void copy(const Kokkos::Serial& stream, void* to, const void* from, std::size_t bytes) {
  const std::uint32_t number = number_of(stream);
  launch(number, "a copy");
  {
    const std::lock_guard lock(*stream_at(number).in_order);
    reads(from, bytes);
    writes(to, bytes);
  }
  leave();
  if (bytes > 0) std::memmove(to, from, bytes);
}

void enqueue(const void* instance, const std::function<void()>& work) {
  const std::uint32_t number =
      number_of_instance(static_cast<Kokkos::Impl::SerialInternal*>(const_cast<void*>(instance)));
  launch(number, "a library's call");
  {
    const std::lock_guard lock(*stream_at(number).in_order);
    work();
  }
  leave();
}

}  // namespace kzero::stream_order

/// ThreadSanitizer calls it for each of its reports, which it prints too.
extern "C" void __tsan_on_report(void* report) {
  using namespace kzero::stream_order;
  ++report_count;
  int thread = 0, bytes = 0, is_write = 0, is_atomic = 0;
  void *address = nullptr, *trace[1] = {};
  __tsan_get_report_mop(report, 0, &thread, &address, &bytes, &is_write, &is_atomic, trace, 1);
  std::fprintf(stderr, "reported now: %s, reached by %s\n", place_of(address).c_str(), running);
}

namespace kzero::runtime {

/// A new one for every point: ThreadSanitizer's release adds to what an address had.
struct Event::Handle {
  char point = 0;
};

Event::Event() = default;
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

void Event::record(const Execution& stream) {
  if (stream_order::is_left_out("record", __builtin_return_address(0))) return;
  handle_ = std::make_unique<Handle>();
  stream_order::as_stream(stream, [&](std::mutex&) { __tsan_release(&handle_->point); });
}

void Event::wait(const Execution& stream) const {
  if (stream_order::is_left_out("wait", __builtin_return_address(0))) return;
  if (!handle_) return;
  stream_order::as_stream(stream, [&](std::mutex& in_order) {
    const std::lock_guard lock(in_order);  // whoever fences the stream waits for the point, too
    __tsan_acquire(&handle_->point);
  });
}

/// A device may take any time: what relies on its being fast is not ordered.
bool Event::reached() const { return !handle_; }

void Event::synchronize() const {
  if (stream_order::is_left_out("synchronize", __builtin_return_address(0))) return;
  if (handle_) __tsan_acquire(&handle_->point);
}

int device_count() { return 0; }

void use_device() {}

std::string device_kind() { return "stand-in"; }

/// Each rank has a device of its own.
std::string device_name() { return "device " + std::to_string(::getpid()); }

}  // namespace kzero::runtime

/// Accesses of libraries are ignored, because messages.cpp reports those that count. Reports do not
/// change the exit code: a test counts them.
extern "C" const char* __tsan_default_options() {
  return "ignore_interceptors_accesses=1:history_size=7:exitcode=0";
}
