// Causal multi-head attention: softmax(factor Q K^T) V per head. The T x T matrix of all heads
// is never stored. Backward recomputes the probabilities from the saved log-sum-exp (Dao et al.,
// arXiv 2205.14135). Groups of query heads may share a head of keys and values (Ainslie et al.,
// arXiv 2305.13245). The back end is chosen at start, never inside a step.
#pragma once

#include <memory>
#include <string>

#include "deck/config.hpp"
#include "kernels/attention/problem.hpp"
#include "kernels/documents.hpp"
#include "kernels/dropout.hpp"
#include "kernels/row.hpp"
#include "memory/arenas.hpp"

namespace kzero::kernels {

using deck::AttentionKind;

/// Adjacent heads in rows [N,..]: head i of row r begins at data + r * stride + i * d.
template <class T>
struct HeadColumns {
  T* data = nullptr;
  Index stride = 0;
};

/// The heads of queries, keys and values, or of their gradients.
template <class T>
struct HeadOperands {
  HeadColumns<T> q, k, v;
};

/// The operands in one matrix [N,(H+2K)d], whose rows hold q, k, v.
template <class T>
HeadOperands<T> operands_in(const Matrix<T>& qkv, const AttentionShape& shape) {
  const Index stride = qkv.extent(1), kv_width = shape.kv_heads * shape.head_width;
  T* k = qkv.data() + shape.width();
  return {{qkv.data(), stride}, {k, stride}, {k + kv_width, stride}};
}

/// The weights that the rows of a micro-batch may use: each row has weights for the keys in its own
/// document. Training may drop some of them. Backward gets the same as its forward.
struct AttentionRows {
  Documents documents{};  // empty unless the problem may have them
  Dropout dropout{};      // off unless the problem may drop weights
  Index first_head = 0;   // number of the first query head in the full model

  AttentionRows() = default;
  AttentionRows(const Documents& of_rows) : documents(of_rows) {}  // NOLINT: implicit for tests
  AttentionRows(const Documents& of_rows, const Dropout& weights, Index head)
      : documents(of_rows), dropout(weights), first_head(head) {}
};

/// Attention for one problem. Operands have the problem's type, shape and strides.
template <class T>
class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  /// Names what the bits depend on in addition to the problem and the device.
  virtual std::string name() const { return "kzero's kernels"; }

  /// Returns why the back end cannot compute the problem, by rules that need no device. Empty if it
  /// can.
  virtual std::string refusal() const { return {}; }

  /// Bytes of scratch for forward and backward with this many concurrent threads. Needs no device.
  virtual Index scratch_bytes(Index threads) const = 0;

  /// Prepares for calls on the current device with this scratch. Call it once, before any call that
  /// computes. Throws Error(other) with the reason if the back end cannot compute there.
  virtual void start(Vector<float> scratch) = 0;

  /// Enqueues out [B*T,H*d] from the heads of `in` on `exec`. log_sum [B*H,T] is kept for backward.
  /// Overwrites out and log_sum. A row sees rows of its document only. Dropped weights count in
  /// log_sum.
  virtual void forward(const Execution& exec, const HeadOperands<const T>& in,
                       const AttentionRows& rows, Matrix<T> out, Matrix<float> log_sum) const = 0;

  /// Enqueues the gradients of `in` from dout [B*T,H*d] and from forward's rows, out and log_sum.
  /// The gradients of k and v are sums over their query heads in ascending order. Overwrites the
  /// gradients.
  virtual void backward(const Execution& exec, const HeadOperands<const T>& in,
                        const AttentionRows& rows, Matrix<const T> out, Matrix<const float> log_sum,
                        Matrix<const T> dout, const HeadOperands<T>& gradients) const = 0;
};

/// The attention of one model.
template <class T>
struct ChosenAttention {
  std::shared_ptr<AttentionBackend<T>> backend;  // null on measuring arenas
  std::string arithmetic;  // what the bits depend on; empty in builds with one back end
  std::string refusal;  // why an earlier back end of the table is not used; empty if the first is
};

/// Chooses the named back end of this build, or for `automatic` its first. If that cannot compute
/// the problem, the next in the table is tried. Allocates scratch for `threads` concurrent threads
/// in the workspace category, enough for any of these back ends. Uses no device on measuring
/// arenas. Throws Error(usage) if a named back end cannot compute the problem or is not in this
/// build.
template <class T>
ChosenAttention<T> choose_attention(memory::Arenas& arenas, const AttentionProblem& problem,
                                    AttentionKind kind, Index threads);

}  // namespace kzero::kernels
