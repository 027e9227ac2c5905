// cuDNN's fused attention for one problem, through the graphs of its frontend: forward with the
// log-sum-exp of each row, and a backward that repeats its bits. For files of the CUDA build only.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "kernels/attention/problem.hpp"

namespace kzero::kernels {

class CudnnAttentionPlans {
 public:
  /// Makes the plans for the current device. Throws Error(other) with cuDNN's reason if it has
  /// none.
  explicit CudnnAttentionPlans(const AttentionProblem& problem);
  ~CudnnAttentionPlans();

  /// "cuDNN 9.27.0".
  static std::string name();

  /// Enqueue on `stream`; scratch has the scratch_bytes() of AttentionCalls.
  void forward(cudaStream_t stream, const ForwardOperands& at, void* scratch) const;
  void backward(cudaStream_t stream, const BackwardOperands& at, void* scratch) const;

 private:
  struct Graphs;

  /// Enqueues the heads of a call that begin with sequence `b` and head `k` of the keys.
  void backward_call(cudaStream_t stream, const BackwardOperands& at, Index b, Index k,
                     void* scratch) const;

  AttentionProblem problem_;
  AttentionShape call_;  // of a call of backward
  std::unique_ptr<Graphs> graphs_;
};

}  // namespace kzero::kernels
