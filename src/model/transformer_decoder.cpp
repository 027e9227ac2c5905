#include "model/transformer_decoder.hpp"

#include <algorithm>

#include "kernels/few_rows.hpp"
#include "kernels/gelu.hpp"
#include "kernels/initialize.hpp"
#include "kernels/rotary.hpp"
#include "kernels/swiglu.hpp"
#include "model/head.hpp"
#include "model/rotary.hpp"

namespace kzero::model {

namespace {

using memory::Category;

kernels::WeightOrder order_of(const TransformerShape& shape) {
  return shape.weight_layout == WeightLayout::in_out ? kernels::WeightOrder::in_out
                                                     : kernels::WeightOrder::out_in;
}

template <class T>
void copy_to_device(const Execution& exec, const std::vector<T>& from, const Vector<T>& to) {
  const tensor::HostMatrix<const T> host(from.data(), 1, from.size());
  Kokkos::deep_copy(exec, Matrix<T>(to.data(), 1, from.size()), host);
}

void copy_to_host(const Execution& exec, const float* from, std::vector<float>& to, Index count) {
  const tensor::HostMatrix<float> host(to.data(), 1, static_cast<std::size_t>(count));
  Kokkos::deep_copy(exec, host, Matrix<const float>(from, 1, static_cast<std::size_t>(count)));
}

}  // namespace

template <class T>
DecoderBuffers<T>::DecoderBuffers(memory::Arenas& arenas, const TransformerShape& s,
                                  const DecoderShape& decoder, Index rows) {
  const auto vector = [&]<class U>(U, Category category) {
    return Vector<U>(arenas.take<U>(category, rows), static_cast<std::size_t>(rows));
  };
  const auto take = [&](Index width) { return arenas.take<T>(Category::workspace, rows * width); };
  tokens = vector(Token{}, Category::io);
  sequences = vector(Index{}, Category::io), positions = vector(Index{}, Category::io);
  x = take(s.hidden), middle = take(s.hidden), normal = take(s.hidden);
  qkv = take(s.own.qkv_width()), attention = take(s.own.width);
  rotated = s.qk_norm ? take(s.own.width + s.own.kv_width) : nullptr;
  hidden = take(s.hidden_columns()), activated = take(s.own.feed_forward);
  share = s.tensor.size > 1 ? take(s.hidden) : nullptr;
  logits = arenas.take<float>(Category::workspace, decoder.sequences * s.vocab);
  mean = vector(float{}, Category::workspace), rstd = vector(float{}, Category::workspace);
  if (s.positions != PositionKind::rotary) return;
  rotary = Matrix<float>(arenas.take<float>(Category::workspace, decoder.positions * s.head_dim),
                         static_cast<std::size_t>(decoder.positions),
                         static_cast<std::size_t>(s.head_dim));
}

template <class T>
TransformerDecoder<T>::TransformerDecoder(memory::Arenas& arenas, const deck::Model& model,
                                          const DecoderResources& resources)
    : shape_(model, resources.link.rank),
      decoder_(resources.shape),
      most_rows_(std::max(decoder_.rows, decoder_.sequences)),
      cache_shape_{decoder_.sequences, decoder_.positions, shape_.own.heads, shape_.own.kv_heads,
                   shape_.head_dim},
      link_(resources.link),
      group_(arenas, resources.link, most_rows_, shape_.hidden),
      gemm_(resources.gemm),
      b_(arenas, shape_, decoder_, most_rows_) {
  const Index elements = cache_shape_.elements();
  for (Index i = 0; i < shape_.layers; ++i)
    cache_.push_back({arenas.take<T>(Category::activations, elements),
                      arenas.take<T>(Category::activations, elements)});
  const Index scratch_bytes =
      tensor::gemm_workspace_bytes(shape_.longest_bias() * bytes_of(dtype_of<T>));
  auto* scratch = arenas.take<std::byte>(Category::workspace, scratch_bytes);
  if (arenas.measuring()) return;
  exec_.emplace();
  gemm_->use_workspace(scratch, scratch_bytes);
  host_logits_.resize(static_cast<std::size_t>(decoder_.sequences * shape_.vocab));
  if (is_split()) parts_.resize(host_logits_.size());
  const auto count = static_cast<std::size_t>(elements);
  for (const kernels::KeyValueCache<T>& cache : cache_) {
    kernels::fill<T>(*exec_, Vector<T>(cache.keys, count), 0);
    kernels::fill<T>(*exec_, Vector<T>(cache.values, count), 0);
  }
  if (shape_.positions != PositionKind::rotary) return;
  deck::Model as_long = model;
  as_long.sequence = decoder_.positions;
  copy_to_device(*exec_, rotary_table(as_long), Vector<float>(b_.rotary.data(), b_.rotary.size()));
  exec_->fence("kzero::model::decoder_ready");  // before the table is destroyed
}

template <class T>
std::span<const float> TransformerDecoder<T>::read(Units<const T> parameters, Index sequence,
                                                   Index first, std::span<const Token> tokens) {
  const Index count = static_cast<Index>(tokens.size());
  std::vector<PlacedToken> rows;
  for (Index begin = 0; begin < count; begin += decoder_.rows) {
    rows.clear();
    for (Index i = begin; i < std::min(count, begin + decoder_.rows); ++i)
      rows.push_back({tokens[i], sequence, first + i});
    run(parameters, rows, Products::library);
  }
  return logits(parameters, 1);
}

template <class T>
std::span<const float> TransformerDecoder<T>::step(Units<const T> parameters,
                                                   std::span<const PlacedToken> rows) {
  run(parameters, rows, Products::few_rows);
  return logits(parameters, static_cast<Index>(rows.size()));
}

template <class T>
kernels::RowPlaces TransformerDecoder<T>::places() const {
  const auto count = static_cast<std::size_t>(rows_);
  return {Vector<const Index>(b_.sequences.data(), count),
          Vector<const Index>(b_.positions.data(), count)};
}

template <class T>
void TransformerDecoder<T>::place(std::span<const PlacedToken> rows) {
  std::vector<Token> tokens;
  std::vector<Index> sequences, positions;
  for (const PlacedToken& row : rows) {
    tokens.push_back(row.token);
    sequences.push_back(row.sequence);
    positions.push_back(row.position);
  }
  copy_to_device(*exec_, tokens, b_.tokens);
  copy_to_device(*exec_, sequences, b_.sequences);
  copy_to_device(*exec_, positions, b_.positions);
  exec_->fence("kzero::model::tokens_placed");  // before the host's copies are destroyed
}

template <class T>
void TransformerDecoder<T>::run(Units<const T> parameters, std::span<const PlacedToken> rows,
                                Products products) {
  rows_ = static_cast<Index>(rows.size());
  products_ = products;
  place(rows);
  embed(parameters[0]);
  for (std::size_t i = 0; i < cache_.size(); ++i)
    block(BlockParams<const T>(shape_, parameters[i + 1]), cache_[i]);
}

template <class T>
void TransformerDecoder<T>::embed(const T* unit) {
  const Matrix<const T> wte(unit, shape_.own.vocab, shape_.hidden);
  const Matrix<T> x = rows_of(b_.x, shape_.hidden);
  const Matrix<T> own = is_split() ? rows_of(b_.share, shape_.hidden) : x;
  kernels::embedding_lookup<T>(*exec_, b_.tokens, wte, shape_.own.first_token, own);
  if (is_split()) group_.all_reduce(*exec_, own, nullptr, nullptr, x);
  if (shape_.positions != PositionKind::learned) return;
  const Matrix<const T> wpe(unit + wte.size(), shape_.sequence, shape_.hidden);
  kernels::add_positions_at<T>(*exec_, wpe, b_.positions, x);
}

template <class T>
void TransformerDecoder<T>::norm(const Norm<const T>& p, const T* x, Index rows) {
  const Matrix<const T> in(x, rows, shape_.hidden);
  const Matrix<T> out(b_.normal, rows, shape_.hidden);
  if (shape_.norm == NormKind::rms_norm) {
    kernels::rmsnorm_forward<T>(*exec_, in, p.weight, shape_.norm_eps, out, b_.rstd);
  } else {
    kernels::layernorm_forward<T>(*exec_, in, p.weight, p.bias, shape_.norm_eps, out, b_.mean,
                                  b_.rstd);
  }
}

template <class T>
void TransformerDecoder<T>::linear(const T* x, Index width, const Linear<const T>& layer, T* y,
                                   Index columns, const T* addend) {
  const Matrix<const T> in(x, rows_, width);
  const Matrix<T> out = rows_of(y, columns);
  if (products_ == Products::library) {
    gemm_->run(*exec_, forward_product<T>(shape_, in, layer, out, addend));
  } else {
    kernels::few_rows_product<T, T>(
        *exec_, {in, layer.weight, order_of(shape_), layer.bias.data(), addend}, out);
  }
}

template <class T>
void TransformerDecoder<T>::row_parallel(const T* x, Index width, const Linear<const T>& layer,
                                         const T* addend, T* y) {
  if (!is_split()) {
    linear(x, width, layer, y, shape_.hidden, addend);
    return;
  }
  linear(x, width, {layer.weight, {}}, b_.share, shape_.hidden);
  group_.all_reduce(*exec_, rows_of(b_.share, shape_.hidden), layer.bias.data(), addend,
                    rows_of(y, shape_.hidden));
}

template <class T>
void TransformerDecoder<T>::attend(const BlockParams<const T>& p,
                                   const kernels::KeyValueCache<T>& cache) {
  const LocalShape& own = shape_.own;
  const Matrix<T> qkv = rows_of(b_.qkv, own.qkv_width());
  const kernels::AttentionShape heads{1, 1, own.heads, own.kv_heads, shape_.head_dim};
  auto in = kernels::operands_in<const T>(qkv, heads);
  if (shape_.positions == PositionKind::rotary) {
    const Matrix<T> rotated = shape_.qk_norm ? rows_of(b_.rotated, own.width + own.kv_width) : qkv;
    kernels::rotary_at<T>(*exec_, {shape_.sequence, own.heads, own.kv_heads, shape_.head_dim},
                          b_.rotary, b_.positions, {p.q_norm, p.k_norm, shape_.norm_eps}, qkv,
                          rotated);
    const Index stride = rotated.extent(1);
    in.q = {rotated.data(), stride}, in.k = {rotated.data() + own.width, stride};
  }
  kernels::store_keys_values<T>(*exec_, cache_shape_, places(), in.k, in.v, cache);
  kernels::cached_attention<T>(*exec_, cache_shape_, places(), in.q, cache,
                               rows_of(b_.attention, own.width));
}

template <class T>
void TransformerDecoder<T>::block(const BlockParams<const T>& p,
                                  const kernels::KeyValueCache<T>& cache) {
  const Index hidden = shape_.hidden_columns(), columns = shape_.own.feed_forward;
  norm(p.norm1, b_.x, rows_);
  linear(b_.normal, shape_.hidden, p.qkv, b_.qkv, shape_.own.qkv_width());
  attend(p, cache);
  row_parallel(b_.attention, shape_.own.width, p.projection, b_.x, b_.middle);
  norm(p.norm2, b_.middle, rows_);
  linear(b_.normal, shape_.hidden, p.up, b_.hidden, hidden);
  if (shape_.activation == ActivationKind::swiglu) {
    kernels::swiglu_forward<T>(*exec_, rows_of(b_.hidden, hidden), rows_of(b_.activated, columns));
  } else {
    kernels::gelu_forward<T>(*exec_, rows_of(b_.hidden, hidden), rows_of(b_.activated, columns));
  }
  row_parallel(b_.activated, columns, p.down, b_.middle, b_.x);
}

template <class T>
std::span<const float> TransformerDecoder<T>::logits(Units<const T> parameters, Index outputs) {
  const T* unit = parameters[shape_.layers + 1];
  const T* table = shape_.tied_embeddings ? parameters[0] : unit + shape_.norm_elements();
  norm(norm_at(shape_, unit), b_.x + (rows_ - outputs) * shape_.hidden, outputs);
  const Matrix<const T> normal(b_.normal, outputs, shape_.hidden);
  const Matrix<const T> output(table, shape_.own.vocab, shape_.hidden);
  const Matrix<float> own(b_.logits + outputs * shape_.own.first_token, outputs, shape_.own.vocab);
  kernels::few_rows_product<T, float>(*exec_, {normal, output, kernels::WeightOrder::out_in}, own);
  const Index count = outputs * shape_.vocab;
  if (is_split()) {
    gather_logits(outputs);
  } else {
    copy_to_host(*exec_, b_.logits, host_logits_, count);
    exec_->fence("kzero::model::logits_copied");
  }
  return {host_logits_.data(), static_cast<std::size_t>(count)};
}

// The gathered columns of each rank are contiguous for all rows. The host joins them row by row.
template <class T>
void TransformerDecoder<T>::gather_logits(Index outputs) {
  const Index vocab = shape_.vocab, ranks = group_.size();
  std::vector<comm::Span> receive;
  for (Index r = 0; r < ranks; ++r)
    receive.push_back(comm::Span::of(b_.logits + outputs * part_begin(vocab, ranks, r),
                                     outputs * part_size(vocab, ranks, r)));
  const comm::Span own = receive[group_.rank()];
  link_.comm->all_gather(*exec_, {own.data, own.elements, own.dtype}, std::move(receive),
                         comm::Purpose::activations);
  copy_to_host(*exec_, b_.logits, parts_, outputs * vocab);
  exec_->fence("kzero::model::logits_copied");
  for (Index r = 0; r < ranks; ++r) {
    const Index begin = part_begin(vocab, ranks, r), count = part_size(vocab, ranks, r);
    for (Index i = 0; i < outputs; ++i)
      std::copy_n(parts_.begin() + outputs * begin + i * count, count,
                  host_logits_.begin() + i * vocab + begin);
  }
}

template <class T>
std::unique_ptr<Decoder<T>> make_decoder(const deck::Model& model, memory::Arenas& arenas,
                                         const DecoderResources& resources) {
  return std::make_unique<TransformerDecoder<T>>(arenas, model, resources);
}

template <class T>
using DecoderOf = std::unique_ptr<Decoder<T>>;

#define KZERO_INSTANTIATE(T)                                                 \
  template struct DecoderBuffers<T>;                                         \
  template class TransformerDecoder<T>;                                      \
  template DecoderOf<T> make_decoder<T>(const deck::Model&, memory::Arenas&, \
                                        const DecoderResources&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
