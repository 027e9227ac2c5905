// The context shared by all units of a model: the device, the GEMM back end, the shape of a
// micro-batch and the scratch memory. Units run one after another and reuse the scratch memory.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/attention/attention.hpp"
#include "kernels/distillation.hpp"
#include "kernels/row_sums.hpp"
#include "kernels/top_tokens.hpp"
#include "model/sequence_group.hpp"
#include "model/shape.hpp"
#include "model/tensor_group.hpp"

namespace kzero::model {

/// A chunk of gradients of logits [rows,V of this tensor rank]. Rows are `stride` elements apart.
/// GEMMs compute with `columns` columns. Those from V on are scratch in the logits and 0 in their
/// gradient. The chunk is filled slice by slice: logits are in memory for `slice` rows at a time.
struct LogitsChunk {
  Index rows = 0;
  Index stride = 0;
  Index columns = 0;
  Index slice = 0;
};

/// Chooses the chunk for a micro-batch of `rows` rows. All tensor ranks use the same rows because
/// they communicate chunk by chunk.
LogitsChunk logits_chunk(Index rows, const TransformerShape& shape, Dtype type,
                         bool on_device = !tensor::on_host);

/// The elements after the output projection's matrix [V of this tensor rank,D] that its GEMMs read
/// in 16 bits. They must be finite, and do not affect a result.
Index read_after_output(const TransformerShape& shape, bool on_device = !tensor::on_host);

/// The scratch memory that the units of a model need, in elements. Units run one after another, so
/// that the largest need counts.
struct ScratchNeeds {
  Index wide = 0;              // of Context::wide
  Index sum_columns = 0;       // the columns of the widest gradient that is a sum over rows
  Index partial_gradient = 0;  // of the largest gradient that a tensor group sums in one call
  Index tile_sums = 0;         // of Context::tile_sums
  Index head_squares = 0;      // of Context::head_squares
  Index activation_sums = 0;   // of Context::activation_sums
  Index sorted_rows = 0;       // of ExpertScratch
  Index gate_gradients = 0;
  Index router_gradient = 0;
  std::vector<kernels::AttentionProblem> attention{};  // the different ones
  Index window = 0;  // the same in all layers that have one; 0: none

  void include(const ScratchNeeds& other);
};

/// The scratch memory of halves with experts, for the rows of one chunk.
template <class T>
struct ExpertScratch {
  T* sorted = nullptr;              // [max_sorted_rows, D]
  Vector<std::int32_t> counts;      // [E], of rows that count
  float* gate_gradients = nullptr;  // [ranks, N, k]
  T* router_gradient = nullptr;     // [N, E]: of the logits
};

template <class T>
struct Context {
  std::optional<Execution> exec;  // empty while measuring, which needs no device
  tensor::Gemm* gemm = nullptr;
  TransformerShape shape;
  Index batch = 0;        // B
  Index first_row = 0;    // of this rank's rows, or of a chunk, in the sequence
  Index rows = 0;         // N = B * T, or this rank's part, or a chunk
  Index stream_rows = 0;  // n: local rows of the residual stream; N without sequence parallelism
  TensorGroup<T> group;
  SequenceGroup<T> sequence_group;

  // Scratch memory. The blocks' scratch and the head's scratch share memory. Blocks only:
  T* wide = nullptr;  // gradients wider than D: of q, k and v, or within the feed-forward part
  ExpertScratch<T> experts;
  // Head only:
  LogitsChunk chunk;
  float* logits = nullptr;  // [slice, V], V of this rank
  T* dlogits = nullptr;     // [chunk, V] with backward; in fp32 each slice has been its logits
  // [chunk.columns, D]: the sum over chunks of the output projection's gradient, which 16-bit runs
  // round once per micro-batch. Null in fp32 and if one chunk has all rows.
  float* output_gradient = nullptr;
  // [ranks * slice, 3] of a tensor group or to find top tokens; with a teacher [ranks * 2 slice,
  // 3], then [ranks * slice, 2] of KL. Else null.
  float* softmaxes = nullptr;
  kernels::DistillationRows distillation;  // [slice] with a teacher, else empty
  kernels::Candidates candidates;          // [ranks * slice, top] to find top tokens, else empty
  // Blocks and head:
  Matrix<T> hidden_grad;                   // [N, D], with capacity for [N, H d]
  Matrix<T> gathered;                      // [N, D] with sequence parallelism, else empty
  Matrix<T> adapter_hidden, adapter_grad;  // [N, r] of adapters and of their gradients, else empty
  Vector<T> partial_gradient;              // gradients that are summed over ranks, else empty
  Matrix<float> partial;                   // [row_groups, ..]: partial sums over rows
  Matrix<float> rotary;  // [tables * T, head width]: rotary_tables, if positions are rotary
  float* head_squares = nullptr;  // [ranks, N, 2]: sums of norms over all heads of q and of k
  Vector<float> activation_sums;  // of the gradients of an activation's own parameters, else empty
  Vector<float> losses;           // [N]
  Vector<float> kl;               // [N] with a teacher, else empty

  // fp32 sums of the feed-forward half's gradients over tiles, which are rounded once per chunk: in
  // 16-bit runs, or of a unit of adapters. Otherwise null.
  float* tile_sums = nullptr;

  // What each row of the micro-batch sees in the layers with a window: see window_of. [B T] of all
  // sequence ranks, or empty if no layer has one.
  Index window = 0;
  Vector<std::int32_t> window_begin, window_end;

  /// The same for each chunk, with its rows, and for each tile of a chunk. Empty if there is only
  /// one.
  std::vector<Context> chunks, tiles;

  /// Allocates the scratch memory that the shape's embedding and head need and `needs` of its
  /// blocks, including the GEMM back end's, from the workspace category, and the rows of a window
  /// from activations. Accepts measuring arenas without a GEMM library.
  Context(memory::Arenas& arenas, tensor::Gemm* gemm, const TransformerShape& shape,
          const deck::Model& model, const BatchShape& batch, const ScratchNeeds& needs,
          const TensorLink& link = {}, const SequenceLink& sequence = {});

  bool is_split() const { return group.size() > 1; }
  bool splits_stream() const { return is_split() && shape.sequence_parallel; }
  /// The first local row of the residual stream, among `rows`.
  Index first_stream_row() const {
    return splits_stream() ? shape.first_row(rows, shape.tensor.rank) : 0;
  }
  /// The same among the rows of the sequence.
  kernels::StreamRows stream_in_sequence() const {
    return {first_row + first_stream_row(), shape.sequence};
  }

  /// Fills what the rows of a micro-batch with these documents see in the window.
  void begin_micro_batch(const kernels::Documents& documents) const;
  kernels::Documents in_window() const { return {window_begin, window_end}; }

  /// The back end that was chosen for one of the needed problems.
  const kernels::ChosenAttention<T>& attention_for(const kernels::AttentionProblem& problem) const;
  /// The back end of the first attention half, which names the model's arithmetic.
  const kernels::ChosenAttention<T>& attention() const { return attention_.front().second; }

  /// The first rows of `wide` as a matrix of this many columns.
  Matrix<T> wide_view(Index columns) const { return {wide, rows, columns}; }

  /// Returns all N rows of a matrix of the residual stream: the matrix itself, or its all-gather
  /// over the tensor group. Valid until the next call.
  Matrix<const T> all_rows(const Matrix<const T>& of_stream) const;

  /// Computes out = sum of `share` [N,D] over the tensor group + bias + addend [n,D], for the local
  /// rows of the residual stream. bias and addend may be null. out [n,D] may be those rows of
  /// share, or addend. Requires a tensor group. Collective over the tensor group.
  void sum_to_stream(const Matrix<T>& share, const T* bias, const T* addend,
                     const Matrix<T>& out) const;

  /// Computes the sum in place in share. Without a tensor group, share already is the sum.
  Matrix<T> stream_sum(const Matrix<T>& share) const;

  /// Adds that sum of share [N,D], which it may overwrite, to out [n,D].
  void add_stream_sum(const Matrix<T>& share, const Matrix<T>& out) const;

  /// Computes gradient (=|+=) the sum over the tensor group, in rank order, of the first `elements`
  /// elements of partial_gradient. Collective over the tensor group.
  void sum_partial_gradient(Index elements, tensor::Accumulate accumulate, T* gradient) const;

 private:
  void take_attention(memory::Arenas& arenas, std::span<const kernels::AttentionProblem> problems,
                      const BatchShape& batch);
  void take_window(memory::Arenas& arenas, Index of_layers);
  void take_sums(memory::Arenas& arenas, const ScratchNeeds& needs);
  void take_softmaxes(memory::Arenas& arenas, const BatchShape& batch);
  void take_experts(memory::Arenas& arenas, const ScratchNeeds& needs, bool has_backward);
  void divide_into_chunks();
  void divide_into_tiles(Index tile_rows);
  void fill_rotary(const deck::Model& model);

  std::vector<std::pair<kernels::AttentionProblem, kernels::ChosenAttention<T>>> attention_;
};

/// Returns whether the rows of a chunk are several tiles.
inline bool has_tiles(const BatchShape& batch, const TransformerShape& shape) {
  return batch.tile_rows > 0 && batch.tile_rows < batch.batch * shape.chunk_rows();
}

/// Rows of a matrix, or elements of a vector, that belong to a chunk of a rank's rows or a tile of
/// a chunk. With only one: all of them, which are fewer than its rows with sequence parallelism.
struct PartRows {
  Index first = 0, count = 0;
  bool is_all = true;

  template <class U>
  Matrix<U> of(const Matrix<U>& x) const {
    if (is_all || x.size() == 0) return x;
    return {x.data() + first * static_cast<Index>(x.extent(1)), static_cast<std::size_t>(count),
            x.extent(1)};
  }
  template <class U>
  Vector<U> of(const Vector<U>& x) const {
    if (is_all || x.size() == 0) return x;
    return {x.data() + first, static_cast<std::size_t>(count)};
  }
};

/// Calls f(context, rows, number) for each part of a context, in order.
template <class T, class F>
void for_each_part(const Context<T>& all, const std::vector<Context<T>>& parts, const F& f) {
  if (parts.empty()) f(all, PartRows{}, Index{0});
  Index first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    f(parts[i], PartRows{first, parts[i].rows, false}, static_cast<Index>(i));
    first += parts[i].rows;
  }
}

template <class T, class F>
void for_each_chunk(const Context<T>& c, const F& f) {
  for_each_part(c, c.chunks, f);
}

/// Of a chunk's context.
template <class T, class F>
void for_each_tile(const Context<T>& c, const F& f) {
  for_each_part(c, c.tiles, f);
}

}  // namespace kzero::model
