// The context in which every unit of a model computes: the device, the GEMM back end, the shape of
// a micro-batch and the scratch memory, which units use in turn because they run one after the
// other.
#pragma once

#include <optional>

#include "kernels/attention/attention.hpp"
#include "kernels/row_sums.hpp"
#include "model/logits_chunk.hpp"
#include "model/tensor_group.hpp"
#include "model/transformer_shape.hpp"

namespace kzero::model {

template <class T>
struct Context {
  std::optional<Execution> exec;  // none while measuring, which needs no device
  tensor::Gemm* gemm = nullptr;
  TransformerShape shape;
  Index batch = 0;        // B
  Index rows = 0;         // N = B * T
  Index stream_rows = 0;  // n: local rows of the residual stream, N without sequence parallelism
  TensorGroup<T> group;

  // Scratch. What blocks alone need and what the head alone needs share memory. Of blocks:
  T* qkv_or_ffn_grad = nullptr;  // [N, max(F, 3D)], F and 3D of this rank; see the shape's columns
  kernels::ChosenAttention<T> attention;
  // Of the head:
  LogitsChunk chunk;        // rows of logits that exist at once, and their stride
  float* logits = nullptr;  // [chunk, V], V of this rank
  T* dlogits = nullptr;     // [chunk, V]; the logits themselves in fp32
  // [V, D]: sum over chunks of the output projection's gradient, which 16-bit runs round once a
  // micro-batch; none in fp32 and where one chunk has all rows.
  float* output_gradient = nullptr;
  float* softmaxes = nullptr;  // [ranks * chunk, 3] of a tensor group's ranks, else none
  // Of both:
  Matrix<T> hidden_grad;       // [N, D], with memory for [N, H d] too
  Matrix<T> gathered;          // [N, D] in sequence parallelism, else none
  Vector<T> partial_gradient;  // of parameters whose gradients are sums over ranks, else none
  Matrix<float> partial;       // [row_groups, ..] of sums over rows
  Matrix<float> rotary;        // [T, head width]: rotary_table, if positions are rotary
  Vector<float> losses;        // [N]

  /// Takes the scratch from the workspace category, including that of the GEMM back end. Also runs
  /// on measuring arenas, which need no library.
  Context(memory::Arenas& arenas, tensor::Gemm* gemm, const deck::Model& model,
          const BatchShape& batch, const TensorLink& link = {});

  bool is_split() const { return group.size() > 1; }
  bool splits_stream() const { return is_split() && shape.sequence_parallel; }

  kernels::AttentionShape attention_shape() const {
    return {batch, shape.sequence, shape.own.heads, shape.own.kv_heads, shape.head_dim};
  }
  Matrix<T> qkv_or_ffn_grad_view(Index columns) const { return {qkv_or_ffn_grad, rows, columns}; }

  /// Returns all N rows of a matrix of the residual stream: the matrix itself, or its all-gather
  /// over the tensor group, valid until the next call.
  Matrix<const T> all_rows(const Matrix<const T>& of_stream) const;

  /// Computes out = the tensor group's sum of `share` [N,D], for the local rows of the residual
  /// stream, + bias + addend [n,D], either of which may be null. out [n,D] may be those rows of
  /// share, or addend. Call only with a group. Collective over the tensor group.
  void sum_to_stream(const Matrix<T>& share, const T* bias, const T* addend,
                     const Matrix<T>& out) const;

  /// Computes the sum in place in share; without a group share is the sum already.
  Matrix<T> stream_sum(const Matrix<T>& share) const;

  /// Computes gradient (=|+=) the tensor group's sum of the first `elements` of partial_gradient,
  /// in rank order. Collective over the tensor group.
  void sum_partial_gradient(Index elements, kernels::Update update, T* gradient) const;

 private:
  /// What attention is planned for: operands() of block_attention.cpp.
  kernels::AttentionProblem attention_problem(Passes passes) const;
  void fill_rotary(const deck::Model& model);
};

}  // namespace kzero::model
