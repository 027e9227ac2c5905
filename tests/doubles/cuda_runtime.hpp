// The stand-in for CUDA's runtime, as tests see it. Stand-ins for other libraries enqueue with it.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

namespace kzero::doubles {

/// The device that the process computes on. Threads but the first begin with 0, as CUDA's do.
inline constexpr int own_device = 3;

/// When what is enqueued on a stream runs.
enum class Calls {
  at_once,  // when it is enqueued
  late,     // once a stream waits for an event after it: kernels run at once and may follow
  queued    // once the host waits for it, or for what depends on it: for tests without kernels
};
void set_calls(Calls when);

/// The device's clock, in milliseconds, which only calls of the stream advance.
void pass_time(double milliseconds);

/// Enqueues a call on the stream. Throws std::invalid_argument for a stream that is none.
void enqueue(cudaStream_t stream, std::function<void()> call);

/// A place in a stream: after its first `calls` calls.
struct Position {
  cudaStream_t stream = nullptr;
  std::size_t calls = 0;
};
Position end_of(cudaStream_t stream);

/// Runs what is enqueued before the position, and what that waits for.
void run_to(const Position& position);

/// Returns whether what is enqueued on `stream` from now on comes after the position by the order
/// of the stream, by events, or since the host waited.
bool is_after(const Position& position, cudaStream_t stream);

/// Returns whether the stream exists, and the device that it was created on.
bool is_stream(cudaStream_t stream);
int device_of(cudaStream_t stream);

/// The stream of the process's device that lives as long as the process, and that of `owner`: any
/// object's address.
cudaStream_t default_stream();
cudaStream_t stream_for(const void* owner);

/// A launch by this thread has failed; CUDA keeps the error until cudaGetLastError().
void fail_launch();

/// The current device of the calling thread.
int current_device();

/// Whether cudaSetDevice() fails from now on.
void refuse_device(bool refuse);

/// The PCI address of every device; empty: one for each rank of the launch.
void set_bus(const std::string& bus);

/// Notes what no program may do. A program in which one is left at its end has failed, as has one
/// that leaves streams or events behind.
void violate(const std::string& what);

/// Returns and forgets the violations so far.
std::vector<std::string> take_violations();

/// Sets the number of NCCL's groups that have begun and not ended. While there are any, nothing may
/// rely on the stream.
void set_open_groups(int count);

}  // namespace kzero::doubles
