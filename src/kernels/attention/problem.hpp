// What a call of attention is told: its shape and strides, and where it reads and writes. Sees no
// Kokkos, so that a library's headers need not be compiled with it.
#pragma once

#include "base/host_device.hpp"
#include "base/types.hpp"

namespace kzero::kernels {

struct AttentionShape {
  Index batch = 0;       // B
  Index sequence = 0;    // T
  Index heads = 0;       // H
  Index kv_heads = 0;    // K, a divisor of H
  Index head_width = 0;  // d

  /// Query heads that share a head of keys and values, which lie side by side.
  KZERO_INLINE_FUNCTION Index group() const { return heads / kv_heads; }
  Index width() const { return heads * head_width; }
  Index qkv_width() const { return (heads + 2 * kv_heads) * head_width; }
};

/// Everything that decides about the plans of a library: heads of q, k and v in rows, out and its
/// gradient in rows of their own, the gradients of q, k and v in rows of (H+2K)d.
struct AttentionProblem {
  AttentionShape shape;
  Dtype type = Dtype::fp32;
  Index q_stride = 0, k_stride = 0, v_stride = 0;  // elements from row to row
  bool has_backward = true;
  Index most_scratch = Index{1} << 30;  // bytes that a call's plan may need

  Index gradient_stride() const { return shape.qkv_width(); }
};

/// The heads that one call of a library's backward computes, as many as the problem's most_scratch
/// allows of a micro-batch that is cut into equal calls, and the scratch that calls need.
///
/// Gradients in a fixed order cost cuDNN the gradients of all scores at once on Ampere and Hopper:
/// 2 bytes each, queries rounded up to 64 and keys to 128. Beside them it keeps a sum of each row
/// in fp32 and, where query heads share keys, dk and dv of each query head. That is what its plans
/// ask for (cuDNN 9.27 for sm_80, sm_90 and sm_100, made without a device); plans that ask for more
/// are refused.
struct AttentionCalls {
  Index sequences = 0, kv_heads = 0;  // of a call; 0: one head's keys already need too much
  Index plan_bytes = 0;               // of forward and of every call, at most

  explicit AttentionCalls(const AttentionProblem& problem);

  static constexpr Index alignment = 256;  // of a plan's scratch
  Index scratch_bytes() const { return plan_bytes + alignment; }
};

/// Where forward reads and writes; as in attention_forward.
struct ForwardOperands {
  const void *q, *k, *v;
  void* out;
  float* log_sum;
};

/// Where backward reads and writes; as in attention_backward.
struct BackwardOperands {
  const void *q, *k, *v, *out, *dout;
  const float* log_sum;
  void *dq, *dk, *dv;
};

}  // namespace kzero::kernels
