// In place of src/runtime/device_*.cpp: kernels run at once, as on any host, but what libraries
// enqueue may wait until a stream holds an event that was marked behind it.
#include "doubles/device.hpp"

#include <mpi.h>

#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/cuda_stream.hpp"
#include "runtime/event.hpp"

namespace {

struct Stream {
  std::deque<std::function<void()>> calls;
  std::size_t enqueued = 0, done = 0;
};

std::string device;
auto when = kzero::doubles::Calls::at_once;
std::recursive_mutex mutex;  // a watching thread asks what is done
std::map<void*, Stream> streams;
const std::thread::id first_thread = std::this_thread::get_id();  // Kokkos chose its device
thread_local bool has_device = std::this_thread::get_id() == first_thread;

void run(Stream& stream, std::size_t up_to) {
  while (stream.done < up_to) {
    const auto call = std::move(stream.calls.front());
    stream.calls.pop_front();
    call();
    const std::lock_guard lock(mutex);
    ++stream.done;
  }
}

}  // namespace

namespace kzero::doubles {

void set_calls(Calls value) { when = value; }
std::atomic<int> calls_elsewhere = 0;
void set_device_name(const char* name) { device = name; }

void enqueue(void* stream, std::function<void()> call) {
  const std::unique_lock lock(mutex);
  Stream& s = streams[stream];
  s.calls.push_back(std::move(call));
  ++s.enqueued;
  if (when == Calls::at_once) run(s, s.enqueued);
}

}  // namespace kzero::doubles

namespace kzero::runtime {

struct Event::Handle {
  Stream* stream;
  std::size_t calls;
};

Event::Event() = default;
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

void Event::record(const Execution& execution) {
  const std::lock_guard lock(mutex);
  Stream& stream = streams[stream_of(execution)];
  handle_ = std::make_unique<Handle>(Handle{&stream, stream.enqueued});
}

// What comes next on the stream is a kernel, which runs at once, or a call that this thread makes.
void Event::wait(const Execution&) const { synchronize(); }

bool Event::reached() const {
  if (!has_device) ++kzero::doubles::calls_elsewhere;
  const std::lock_guard lock(mutex);
  return !handle_ || handle_->stream->done >= handle_->calls;
}

void Event::synchronize() const {
  if (handle_) run(*handle_->stream, handle_->calls);
}

Execution make_stream() { return Kokkos::Experimental::partition_space(Execution(), 1)[0]; }

std::string device_kind() { return "stand-in"; }
int device_count() { return 0; }
void use_device() { has_device = true; }

cudaStream_t stream_of(const Execution& stream) {
  return reinterpret_cast<cudaStream_t>(stream.impl_internal_space_instance());
}

std::string device_name() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return device.empty() ? "device " + std::to_string(rank) : device;
}

}  // namespace kzero::runtime
