// cuDNN's fused attention for one problem, through its frontend's graphs: forward with each row's
// log-sum-exp, and a backward that reproduces its bits. For files of the CUDA build only.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "kernels/attention/problem.hpp"

namespace kzero::kernels {

/// A device that need not be there.
struct DescribedDevice {
  int capability = 0;      // 90: sm_90
  std::string properties;  // JSON with the names of cuDNN's descriptor of a device
};

class CudnnAttentionPlans {
 public:
  /// Makes the plans for the current device. Throws Error(other) with cuDNN's reason if there is
  /// none. Sets CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT, by which the frontend chooses how backward
  /// adds.
  explicit CudnnAttentionPlans(const AttentionProblem& problem);
  ~CudnnAttentionPlans();

  /// Describes the same graphs for a device that need not be there, and asks the library for plans
  /// with at most `scratch_bytes`. `compile` makes them as well. Throws Error(other) if there are
  /// none.
  static void check(const AttentionProblem& problem, const DescribedDevice& device,
                    Index scratch_bytes, bool compile);

  /// For example "cuDNN 9.27.0".
  static std::string name();

  /// Enqueue on `stream`. scratch has scratch_bytes() of AttentionCalls.
  void forward(cudaStream_t stream, const ForwardOperands& at, void* scratch) const;
  void backward(cudaStream_t stream, const BackwardOperands& at, void* scratch) const;

 private:
  struct Graphs;

  /// Enqueues the call whose heads begin at sequence `b` and key head `k`.
  void backward_call(cudaStream_t stream, const BackwardOperands& at, Index b, Index k,
                     void* scratch) const;

  AttentionProblem problem_;
  AttentionShape call_;  // of one backward call
  std::unique_ptr<Graphs> graphs_;
};

}  // namespace kzero::kernels
