#include "model/context.hpp"

#include <algorithm>

#include "kernels/dropout.hpp"
#include "kernels/norm.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "model/rotary.hpp"

namespace kzero::model {

namespace {

constexpr Index host_bytes = Index{16} << 20;  // target for a chunk of fp32 logits (C_B)
constexpr Index min_host_rows = 256;           // GEMMs are slower with fewer rows

// A device reads and writes the fp32 sum of the weight's gradient [V,D] once per chunk, and reads
// the weight once per slice. Logits of 128 to 256 rows would stay in its L2 cache, but a product of
// so few rows waits for the weight (docs/devices.md). A slice is therefore a quarter of a chunk,
// which takes no more memory than the logits and gradients of half a chunk.
constexpr Index device_row_bytes = 8192;          // of a chunk's gradients, per token
constexpr Index small_chunk = Index{512} << 20;   // bytes up to which a chunk has twice the rows
constexpr Index slices = 4;                       // of a chunk
constexpr Index min_slice = 512;                  // rows
constexpr Index cached_weight = Index{16} << 20;  // bytes up to which slices may have fewer rows

/// In elements: 128 bytes of 16-bit gradients. Every row then begins at a cache line of the device,
/// and GEMM libraries load 16 bytes at a time. Without padding, an odd vocabulary aligns rows to
/// only 2 bytes.
constexpr Index device_stride = 64;

/// In elements: 16 bytes of 16-bit gradients. GEMM libraries may use tensor cores at full speed
/// only if the extents of matrices, too, are multiples of 16 bytes (cuBLAS' documentation, "Tensor
/// Core Usage"). An fp32 run uses no tensor cores.
constexpr Index device_columns = 8;

Index host_rows(Index vocab) { return std::max(min_host_rows, host_bytes / (vocab * 4)); }

Index device_rows(Index vocab, Dtype type) {
  const Index rows = device_row_bytes / bytes_of(type);
  return 2 * device_row_bytes * vocab <= small_chunk ? 2 * rows : rows;
}

Index device_slice(Index rows, Index weight_bytes) {
  const Index least = weight_bytes <= cached_weight ? 1 : min_slice;
  return std::min(rows, std::max(least, ceil_div(rows, slices)));
}

/// The columns that GEMMs compute in addition to the vocabulary's.
Index more_columns(const TransformerShape& s, Dtype type, bool on_device) {
  const bool is_padded = on_device && type != Dtype::fp32;
  return is_padded ? round_up(s.own.vocab, device_columns) - s.own.vocab : 0;
}

}  // namespace

LogitsChunk logits_chunk(Index rows, const TransformerShape& s, Dtype type, bool on_device) {
  const Index vocab = ceil_div(s.vocab, s.tensor.size);
  const Index aim = on_device ? device_rows(vocab, type) : host_rows(vocab);
  const Index held = std::min(aim, ceil_div(rows, 2));  // never all, except of a single row
  return {.rows = held,
          .stride = on_device ? round_up(s.own.vocab, device_stride) : s.own.vocab,
          .columns = s.own.vocab + more_columns(s, type, on_device),
          .slice = on_device ? device_slice(held, vocab * s.hidden * bytes_of(type)) : held};
}

Index read_after_output(const TransformerShape& s, bool on_device) {
  return more_columns(s, Dtype::bf16, on_device) * s.hidden;
}

void ScratchNeeds::include(const ScratchNeeds& other) {
  wide = std::max(wide, other.wide);
  sum_columns = std::max(sum_columns, other.sum_columns);
  partial_gradient = std::max(partial_gradient, other.partial_gradient);
  tile_sums = std::max(tile_sums, other.tile_sums);
  head_squares = std::max(head_squares, other.head_squares);
  activation_sums = std::max(activation_sums, other.activation_sums);
  sorted_rows = std::max(sorted_rows, other.sorted_rows);
  gate_gradients = std::max(gate_gradients, other.gate_gradients);
  router_gradient = std::max(router_gradient, other.router_gradient);
  for (const kernels::AttentionProblem& problem : other.attention) {
    if (std::ranges::find(attention, problem) == attention.end()) attention.push_back(problem);
  }
  window = std::max(window, other.window);
}

namespace {

/// The needs of the embedding and the head.
ScratchNeeds needs_of_ends(const TransformerShape& s) {
  const bool sums_norms = s.tensor.size > 1 && s.sequence_parallel && !s.is_frozen();
  return {.sum_columns = s.norm_elements(), .partial_gradient = sums_norms ? s.norm_elements() : 0};
}

}  // namespace

template <class T>
Context<T>::Context(memory::Arenas& arenas, tensor::Gemm* products,
                    const TransformerShape& of_model, const deck::Model& model, const BatchShape& b,
                    const ScratchNeeds& of_blocks, const TensorLink& link,
                    const SequenceLink& sequence)
    : gemm(products),
      shape(of_model),
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
  ScratchNeeds needs = needs_of_ends(s);
  needs.include(of_blocks);
  const Index chunk_rows = b.batch * s.chunk_rows();
  chunk = logits_chunk(chunk_rows, s, dtype_of<T>);
  const bool has_backward = b.passes == Passes::all;
  const auto take_of_blocks = [&] {
    wide = take(T{}, needs.wide);
    if (has_backward && needs.tile_sums > 0) tile_sums = take(float{}, needs.tile_sums);
    if (s.has_experts()) take_experts(arenas, needs, has_backward);
    take_attention(arenas, needs.attention, b);
  };
  const auto take_of_head = [&] {
    const bool in_place = has_backward && dtype_of<T> == Dtype::fp32;
    logits = take(float{}, (in_place ? chunk.rows : chunk.slice) * chunk.stride);
    if constexpr (dtype_of<T> == Dtype::fp32) {
      dlogits = logits;
    } else if (has_backward) {
      dlogits = take(T{}, chunk.rows * chunk.stride);
      if (!s.is_frozen() && chunk.rows < chunk_rows)
        output_gradient = take(float{}, chunk.columns * s.hidden);
    }
    take_softmaxes(arenas, b);
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
  if (needs.head_squares > 0) head_squares = take(float{}, needs.head_squares);
  if (has_backward) take_sums(arenas, needs);
  losses = Vector<float>(take(float{}, rows), rows);
  if (has_backward && b.top > 0) kl = Vector<float>(take(float{}, rows), rows);
  if (const Index positions = s.rotary_tables() * s.sequence; s.positions == PositionKind::rotary)
    rotary = Matrix<float>(take(float{}, positions * s.head_dim), positions, s.head_dim);
  const Index products_bytes =
      tensor::gemm_workspace_bytes(s.longest_bias() * bytes_of(dtype_of<T>));
  auto* products_scratch = take(std::byte{}, products_bytes);
  if (needs.window > 0) take_window(arenas, needs.window);
  if (arenas.measuring()) return;
  exec.emplace();
  gemm->use_workspace(products_scratch, products_bytes);
  if (s.positions == PositionKind::rotary) fill_rotary(model);
  if (s.sequence_rank.own_chunks() > 1) divide_into_chunks();
  if (!has_tiles(b, s)) return;
  if (chunks.empty()) divide_into_tiles(b.tile_rows);
  for (Context& part : chunks) part.divide_into_tiles(b.tile_rows);
}

/// Takes the scratch memory of softmaxes that are computed in parts, for a slice of logits.
template <class T>
void Context<T>::take_softmaxes(memory::Arenas& arenas, const BatchShape& b) {
  const auto take = [&]<class U>(U, Index count) {
    return arenas.take<U>(memory::Category::workspace, count);
  };
  constexpr Index width = kernels::partial_softmax_width;
  const Index ranks = shape.tensor.size, top = b.top;
  if (top == 0) {
    if (is_split()) softmaxes = take(float{}, ranks * chunk.slice * width);
  } else if (b.passes == Passes::all) {
    constexpr Index of_both = kernels::softmax_parts * width + kernels::divergence_width;
    softmaxes = take(float{}, ranks * chunk.slice * of_both);
    distillation = {Matrix<float>(take(float{}, chunk.slice * top), chunk.slice, top),
                    Vector<Token>(take(Token{}, chunk.slice), chunk.slice),
                    Vector<float>(take(float{}, chunk.slice), chunk.slice)};
  } else {
    softmaxes = take(float{}, ranks * chunk.slice * width);
    const Index found = ranks * chunk.slice;
    candidates = {Matrix<Token>(take(Token{}, found * top), found, top),
                  Matrix<float>(take(float{}, found * top), found, top)};
  }
}

/// Takes the scratch memory of gradients that are sums.
template <class T>
void Context<T>::take_sums(memory::Arenas& arenas, const ScratchNeeds& needs) {
  const auto take = [&]<class U>(U, Index count) {
    return arenas.take<U>(memory::Category::workspace, count);
  };
  if (const Index elements = needs.partial_gradient; elements > 0)
    partial_gradient = Vector<T>(take(T{}, elements), elements);
  const Index groups = kernels::row_groups, columns = needs.sum_columns;
  partial = Matrix<float>(take(float{}, groups * columns), groups, columns);
  if (const Index elements = needs.activation_sums; elements > 0)
    activation_sums = Vector<float>(take(float{}, elements), elements);
}

template <class T>
void Context<T>::take_experts(memory::Arenas& arenas, const ScratchNeeds& needs,
                              bool has_backward) {
  const auto take = [&]<class U>(U, Index count) {
    return arenas.take<U>(memory::Category::workspace, count);
  };
  const Index count = shape.experts.count;
  experts.sorted = take(T{}, needs.sorted_rows);
  experts.counts = Vector<std::int32_t>(take(std::int32_t{}, count), count);
  if (!has_backward) return;
  experts.gate_gradients = take(float{}, needs.gate_gradients);
  experts.router_gradient = take(T{}, needs.router_gradient);
}

/// Scratch memory that a chunk needs alone is the same for all. The gradient of attention's output
/// [N,d] is kept in hidden_grad until the last chunk's is there, so that each chunk computes in the
/// part after it.
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
    if (kl.size() > 0) part.kl = Vector<float>(kl.data() + i * count, count);
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

/// Chooses a back end for each problem. One layer runs at a time, so they share their scratch.
template <class T>
void Context<T>::take_attention(memory::Arenas& arenas,
                                std::span<const kernels::AttentionProblem> problems,
                                const BatchShape& b) {
  if (problems.empty()) return;
  const auto take_first = [&] {
    attention_.emplace_back(problems.front(), kernels::choose_attention<T>(arenas, problems.front(),
                                                                           b.attention, b.threads));
  };
  arenas.share(memory::Category::workspace, take_first,
               [&] { take_attention(arenas, problems.subspan(1), b); });
}

template <class T>
void Context<T>::take_window(memory::Arenas& arenas, Index of_layers) {
  const Index all = batch * shape.sequence;
  window = of_layers;
  for (Vector<std::int32_t>* of_rows : {&window_begin, &window_end})
    *of_rows = {arenas.take<std::int32_t>(memory::Category::activations, all),
                static_cast<std::size_t>(all)};
}

template <class T>
void Context<T>::begin_micro_batch(const kernels::Documents& documents) const {
  if (window > 0)
    kernels::window_of(*exec, documents, window, shape.sequence, window_begin, window_end);
}

template <class T>
const kernels::ChosenAttention<T>& Context<T>::attention_for(
    const kernels::AttentionProblem& problem) const {
  return std::ranges::find(attention_, problem, [](const auto& chosen) { return chosen.first; })
      ->second;
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
void Context<T>::add_stream_sum(const Matrix<T>& share, const Matrix<T>& out) const {
  if (is_split()) return sum_to_stream(share, nullptr, out.data(), out);
  kernels::add_dropped<T>(*exec, {}, {}, share, out);
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
  const std::vector<float> tables = rotary_tables(model);
  Kokkos::deep_copy(
      *exec, rotary,
      tensor::HostMatrix<const float>(tables.data(), rotary.extent(0), rotary.extent(1)));
  exec->fence("kzero::model::rotary_copied");  // before the tables are destroyed
}

#define KZERO_INSTANTIATE(T) template struct Context<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
