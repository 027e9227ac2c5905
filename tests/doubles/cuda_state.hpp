// The streams and events of the stand-in for CUDA's runtime. A handle stays allocated after its
// destruction, so that its use is noticed.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace kzero::doubles {

/// How much of each stream comes before a point.
using Clock = std::map<cudaStream_t, std::size_t>;

struct CudaState {
  std::recursive_mutex mutex;    // guards all that follows and what streams hold
  std::recursive_mutex running;  // one thread at a time plays the device
  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> events;
  Clock host;  // what the host has waited for
};
CudaState& cuda();

/// Notes the call of a function that needs a context on the calling thread's current device.
void touch_device(const char* function);

/// Makes the error the calling thread's last one and returns it.
cudaError_t failed(cudaError_t error);

/// The last error of the calling thread, which is then cleared if `clear`.
cudaError_t last_error(bool clear);

void merge(Clock& into, const Clock& from);

}  // namespace kzero::doubles

struct CUstream_st {
  int device = 0;
  bool lives = true;
  bool is_kept = false;  // not to be destroyed before the process ends
  std::deque<std::function<void()>> calls;
  std::size_t enqueued = 0, done = 0;
  kzero::doubles::Clock after;  // what later calls come after
};

struct CUevent_st {
  int device = 0;
  bool lives = true;
  cudaStream_t stream = nullptr;
  std::size_t calls = 0;
  kzero::doubles::Clock after;
  bool is_timed = false;
  std::size_t noted = 0;       // records of it that the stream has come past
  std::size_t recorded = 0;    // records of it
  double milliseconds = -1.0;  // of the device's clock at the last one noted
};
