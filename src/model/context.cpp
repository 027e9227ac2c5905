#include "model/context.hpp"

#include <algorithm>

#include "kernels/norm.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "model/rotary.hpp"

namespace kzero::model {

namespace {

/// The columns of the widest gradient that is a sum over rows: a norm, which is not split, or
/// biases.
Index summed_columns(const TransformerShape& s) {
  Index most = std::max(s.norm_elements(), s.longest_bias());
  if (s.sums_stream_biases()) most = std::max(most, kernels::layernorm_sums(s.hidden, true));
  if (s.qk_norm) most = std::max(most, 2 * s.head_dim);
  return most;
}

/// The same of adapters: A of column-parallel layers, B of row-parallel ones and of copied heads.
Index adapter_gradients(const TransformerShape& s) {
  Index most = 0;
  for (const AdapterShape& a : s.adapters.layers) {
    if (a.is_row_parallel() || a.copies > 1) most = std::max(most, s.adapters.rank * a.out);
    if (!a.is_row_parallel()) most = std::max(most, s.adapters.rank * a.in);
  }
  return most;
}

/// The elements of Context::tile_sums.
Index tile_sum_elements(const TransformerShape& s, Dtype type) {
  const bool trains_here = s.adapters.has(Site::up) || s.adapters.has(Site::down);
  if (s.is_frozen()) return trains_here ? s.adapters.elements() : 0;
  if (type == Dtype::fp32) return 0;
  const Index up = s.hidden * s.hidden_columns(), down = s.own.feed_forward * s.hidden;
  return up + down + (s.biases ? s.hidden_columns() : 0);
}

/// The largest number of elements of gradients that a tensor group sums in one call.
Index partial_gradients(const TransformerShape& s) {
  if (s.tensor.size == 1) return 0;
  if (s.is_frozen()) return adapter_gradients(s);
  Index most = s.sequence_parallel ? s.norm_elements() : 0;
  if (s.qk_norm) most = std::max(most, 2 * s.head_dim);
  if (s.own.kv_copies > 1) most = std::max(most, s.qkv_elements());
  return most;
}

}  // namespace

template <class T>
Context<T>::Context(memory::Arenas& arenas, tensor::Gemm* products, const deck::Model& model,
                    const BatchShape& b, const TensorLink& link, const deck::Lora& lora,
                    const SequenceLink& sequence)
    : gemm(products),
      shape(model, link.rank, lora, sequence.rank),
      batch(b.batch),
      first_row(sequence.rank.rank * shape.own_sequence()),
      rows(b.batch * shape.own_sequence()),
      stream_rows(shape.stream_rows(rows)),
      group(arenas, link, rows, shape.hidden),
      sequence_group(arenas, sequence, shape, rows) {
  const TransformerShape& s = shape;
  const auto take = [&]<class U>(U, Index count) {
    return arenas.take<U>(memory::Category::workspace, count);
  };
  const Index chunk_rows = b.batch * s.chunk_rows();
  const bool in_tiles = has_tiles(b, s);
  chunk = logits_chunk(chunk_rows, s, dtype_of<T>);
  const bool has_backward = b.passes == Passes::all;
  const auto take_of_blocks = [&] {
    const Index widest = (in_tiles ? b.tile_rows : chunk_rows) * s.hidden_columns();
    qkv_or_ffn_grad = take(T{}, std::max(rows * s.exchanged_width(), widest));
    const Index sums = in_tiles && has_backward ? tile_sum_elements(s, dtype_of<T>) : 0;
    if (sums > 0) tile_sums = take(float{}, sums);
    attention =
        kernels::choose_attention<T>(arenas, attention_problem(model, b), b.attention, b.threads);
  };
  const auto take_of_head = [&] {
    const Index logit_elements = chunk.rows * chunk.stride;
    logits = take(float{}, logit_elements);
    if constexpr (dtype_of<T> == Dtype::fp32) {
      dlogits = logits;
    } else {
      dlogits = take(T{}, logit_elements);
      if (has_backward && !s.is_frozen() && chunk.rows < chunk_rows)
        output_gradient = take(float{}, chunk.columns * s.hidden);
    }
    if (is_split())
      softmaxes = take(float{}, s.tensor.size * chunk.rows * kernels::partial_softmax_width);
  };
  arenas.share(memory::Category::workspace, take_of_blocks, take_of_head);
  if (has_backward || is_split())
    hidden_grad = Matrix<T>(take(T{}, rows * std::max(s.hidden, s.own.width)), rows, s.hidden);
  if (splits_stream()) {
    gathered = Matrix<T>(take(T{}, rows * s.hidden), rows, s.hidden);
  }
  if (const Index rank = s.adapters.rank; rank > 0) {
    adapter_hidden = Matrix<T>(take(T{}, rows * rank), rows, rank);
    if (has_backward) adapter_grad = Matrix<T>(take(T{}, rows * rank), rows, rank);
  }
  if (const Index most = partial_gradients(s); has_backward && most > 0)
    partial_gradient = Vector<T>(take(T{}, most), most);
  const Index sums = summed_columns(s);
  if (has_backward)
    partial = Matrix<float>(take(float{}, kernels::row_groups * sums), kernels::row_groups, sums);
  losses = Vector<float>(take(float{}, rows), rows);
  if (s.positions == PositionKind::rotary)
    rotary = Matrix<float>(take(float{}, s.sequence * s.head_dim), s.sequence, s.head_dim);
  const Index products_bytes =
      tensor::gemm_workspace_bytes(s.longest_bias() * bytes_of(dtype_of<T>));
  auto* products_scratch = take(std::byte{}, products_bytes);
  if (arenas.measuring()) return;
  exec.emplace();
  gemm->use_workspace(products_scratch, products_bytes);
  if (s.positions == PositionKind::rotary) fill_rotary(model);
  if (s.sequence_rank.own_chunks() > 1) divide_into_chunks();
  if (!in_tiles) return;
  if (chunks.empty()) divide_into_tiles(b.tile_rows);
  for (Context& part : chunks) part.divide_into_tiles(b.tile_rows);
}

/// Scratch memory that a chunk needs alone is the same for all. The gradient of attention's output
/// [N,d] is kept in hidden_grad until the last chunk's is there, so that each chunk computes in the
/// part behind.
template <class T>
void Context<T>::divide_into_chunks() {
  const Index number = shape.sequence_rank.own_chunks(), count = rows / number;
  const Index capacity = std::max(shape.hidden, shape.own.width);
  const PartRows own{0, count, false};
  const Context whole = *this;
  for (Index i = 0; i < number; ++i) {
    Context& part = chunks.emplace_back(whole);
    part.first_row += i * count;
    part.rows = part.stream_rows = count;
    if (hidden_grad.size() > 0)
      part.hidden_grad = Matrix<T>(hidden_grad.data() + i * count * capacity, count, shape.hidden);
    part.adapter_hidden = own.of(adapter_hidden);
    part.adapter_grad = own.of(adapter_grad);
    part.losses = Vector<float>(losses.data() + i * count, count);
  }
}

/// Tiles compute one after another in the same memory. Only the gradient of the norm's output is
/// that of all of them.
template <class T>
void Context<T>::divide_into_tiles(Index tile_rows) {
  const Context whole = *this;
  for (Index first = 0; first < rows; first += tile_rows) {
    Context& tile = tiles.emplace_back(whole);
    tile.first_row += first;
    tile.rows = tile.stream_rows = std::min(tile_rows, rows - first);
    if (hidden_grad.size() > 0)
      tile.hidden_grad =
          Matrix<T>(hidden_grad.data() + first * shape.hidden, tile.rows, shape.hidden);
    const PartRows own{0, tile.rows, false};
    tile.adapter_hidden = own.of(adapter_hidden);
    tile.adapter_grad = own.of(adapter_grad);
  }
}

template <class T>
kernels::AttentionProblem Context<T>::attention_problem(const deck::Model& model,
                                                        const BatchShape& b) const {
  // Sequence ranks exchange q, k and v together.
  const Index width = shape.exchanged_width() / shape.sequence_rank.size;
  const bool is_apart = shape.qk_norm && !shape.shares_sequences();
  const Index qk_width = is_apart ? shape.own.width + shape.own.kv_width : width;
  return {.shape = attention_shape(),
          .type = dtype_of<T>,
          .q_stride = qk_width,
          .k_stride = qk_width,
          .v_stride = width,
          .has_backward = b.passes == Passes::all,
          .documents = b.documents,
          .dropout = b.passes == Passes::all && model.attention_dropout > 0};
}

template <class T>
Matrix<const T> Context<T>::all_rows(const Matrix<const T>& of_stream) const {
  if (!splits_stream()) return of_stream;
  group.all_gather(*exec, of_stream.data(), gathered, comm::Purpose::activations);
  return gathered;
}

template <class T>
void Context<T>::sum_to_stream(const Matrix<T>& share, const T* bias, const T* addend,
                               const Matrix<T>& out) const {
  if (splits_stream()) {
    group.reduce_scatter(*exec, share, bias, addend, out.data());
  } else {
    group.all_reduce(*exec, share, bias, addend, out);
  }
}

template <class T>
Matrix<T> Context<T>::stream_sum(const Matrix<T>& share) const {
  if (!is_split()) return share;
  const Index width = share.extent(1);
  const Matrix<T> out(share.data() + first_stream_row() * width, stream_rows, width);
  sum_to_stream(share, nullptr, nullptr, out);
  return out;
}

template <class T>
void Context<T>::sum_partial_gradient(Index elements, tensor::Accumulate accumulate,
                                      T* gradient) const {
  const auto count = static_cast<std::size_t>(elements);
  group.all_reduce(*exec, Matrix<T>(partial_gradient.data(), count, 1), nullptr,
                   accumulate == tensor::Accumulate::yes ? gradient : nullptr,
                   Matrix<T>(gradient, count, 1));
}

template <class T>
void Context<T>::fill_rotary(const deck::Model& model) {
  const std::vector<float> table = rotary_table(model);
  Kokkos::deep_copy(
      *exec, rotary,
      tensor::HostMatrix<const float>(table.data(), rotary.extent(0), rotary.extent(1)));
  exec->fence("kzero::model::rotary_copied");  // before the table is destroyed
}

#define KZERO_INSTANTIATE(T) template struct Context<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
