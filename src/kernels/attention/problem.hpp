// The description of an attention call: its shape and strides, and where it reads and writes. Does
// not include Kokkos, so that a library's headers need not be compiled with it.
#pragma once

#include <cmath>

#include "base/host_device.hpp"
#include "base/types.hpp"

namespace kzero::kernels {

struct AttentionShape {
  Index batch = 0;       // B
  Index sequence = 0;    // T
  Index heads = 0;       // H
  Index kv_heads = 0;    // K, a divisor of H
  Index head_width = 0;  // d

  /// Number of query heads that share a head of keys and values. They are adjacent.
  KZERO_INLINE_FUNCTION Index group() const { return heads / kv_heads; }
  Index width() const { return heads * head_width; }
  Index qkv_width() const { return (heads + 2 * kv_heads) * head_width; }

  bool operator==(const AttentionShape&) const = default;
};

/// The factor on a head's scores: `scale`, or 1 / sqrt(d) if that is 0.
inline float score_factor(float scale, Index head_width) {
  return scale == 0 ? 1.0F / std::sqrt(static_cast<float>(head_width)) : scale;
}

/// Everything that a library's plans depend on. q, k and v are heads in rows. out and its gradient
/// have their own rows. The gradients of q, k and v are in rows of (H+2K)d.
struct AttentionProblem {
  AttentionShape shape;
  Dtype type = Dtype::fp32;
  Index q_stride = 0, k_stride = 0, v_stride = 0;  // elements from row to row
  bool has_backward = true;
  bool documents = false;              // whether sequences have several documents, or a window
  bool dropout = false;                // whether calls may drop weights
  Index max_scratch = Index{1} << 30;  // most bytes that a call's plan may need
  float scale = 0;                     // of scores; 0: 1 / sqrt(d)
  bool fixed_order = true;             // of the sums of backward (run.deterministic)

  Index gradient_stride() const { return shape.qkv_width(); }
  float factor() const { return score_factor(scale, shape.head_width); }

  bool operator==(const AttentionProblem&) const = default;
};

/// The heads that one call of a library's backward computes, and the scratch that calls need. A
/// micro-batch is divided into equal calls, each as large as the problem's max_scratch allows.
///
/// cuDNN has two ways to add gradients in a fixed order on Hopper. It prefers to store the
/// gradients of all scores at once: 2 bytes each, with queries rounded up to 64 and keys to 128. If
/// those of one key head need more than max_scratch, it adds dq in fp32 instead, key by key, in
/// scratch that grows with the rows alone. Ampere has only the first way and refuses such problems.
/// Blackwell needs less than either.
///
/// Without a fixed order, dq is added in fp32 in any order: 4 bytes for each of its elements, on
/// Ampere twice. One call then computes many more heads.
///
/// Every way stores an fp32 sum of each row and, where query heads share keys, dk and dv of each
/// query head. tests/cudnn compares the formulas with what cuDNN requests. Plans that request more
/// are refused.
struct AttentionCalls {
  Index sequences = 0, kv_heads = 0;  // of a call; 0 if one key head already needs too much
  bool stores_scores = true;          // the gradients of all scores of a call
  Index plan_bytes = 0;               // the most that forward or a call of backward needs

  explicit AttentionCalls(const AttentionProblem& problem);

  static constexpr Index alignment = 256;  // of a plan's scratch
  Index scratch_bytes() const { return plan_bytes + alignment; }

 private:
  /// Chooses the largest call that fits, if one does.
  void divide(const AttentionProblem& problem);
};

/// Where forward reads and writes, as in attention_forward.
struct ForwardOperands {
  const void *q, *k, *v;
  void* out;
  float* log_sum;
};

/// Where backward reads and writes, as in attention_backward.
struct BackwardOperands {
  const void *q, *k, *v, *out, *dout;
  const float* log_sum;
  void *dq, *dk, *dv;
};

}  // namespace kzero::kernels
