// cuDNN's fused attention for one problem, through its frontend's graphs: forward with each row's
// log-sum-exp, and a backward that reproduces its bits. For files of the CUDA build only.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "kernels/attention/problem.hpp"

namespace kzero::kernels {

class CudnnAttentionPlans {
 public:
  /// Makes the plans for the current device. Throws Error(other) with cuDNN's reason if there is
  /// none.
  explicit CudnnAttentionPlans(const AttentionProblem& problem);
  ~CudnnAttentionPlans();

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
