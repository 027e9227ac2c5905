// The transformer's decoder: a loop over the steps of its parts, on rows of any sequences and
// positions.
#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/few_rows.hpp"
#include "model/decoder.hpp"
#include "model/rotary.hpp"
#include "model/transformer.hpp"

namespace kzero::model {

namespace {

using memory::Category;

template <class T>
void copy_to_device(const Execution& exec, const std::vector<T>& from, const Vector<T>& to) {
  const tensor::HostMatrix<const T> host(from.data(), 1, from.size());
  Kokkos::deep_copy(exec, Matrix<T>(to.data(), 1, from.size()), host);
}

void copy_to_host(const Execution& exec, const float* from, std::vector<float>& to, Index count) {
  const tensor::HostMatrix<float> host(to.data(), 1, static_cast<std::size_t>(count));
  Kokkos::deep_copy(exec, host, Matrix<const float>(from, 1, static_cast<std::size_t>(count)));
}

template <class T>
class TransformerDecoder : public Decoder {
 public:
  /// Takes its memory from the arenas, which may be measuring ones.
  TransformerDecoder(const deck::Model& model, const DecoderResources& resources,
                     Units<const T> parameters, memory::Arenas arenas,
                     std::shared_ptr<const void> owner = nullptr);

  std::span<const float> read(Index sequence, Index first, std::span<const Token> tokens) override;
  std::span<const float> step(std::span<const PlacedToken> rows) override;
  const DecoderShape& shape() const override { return decoder_; }
  Index vocab() const override { return shape_.vocab; }

  /// The arenas that it measured with. The decoder must not be used afterwards.
  memory::Arenas measured() && { return std::move(arenas_); }

 private:
  bool is_split() const { return group_.size() > 1; }
  void fill(const deck::Model& model);
  void place(std::span<const PlacedToken> rows);
  void run(std::span<const PlacedToken> rows, Products products);
  std::span<const float> logits(Index outputs);
  void gather_logits(Index outputs);

  std::shared_ptr<const void> owner_;
  memory::Arenas arenas_;
  TransformerShape shape_;
  DecoderShape decoder_;
  Index max_rows_;  // R of a pass
  kernels::CacheShape cache_;
  TensorLink link_;
  TensorGroup<T> group_;
  tensor::Gemm* gemm_;
  std::vector<const T*> units_;
  std::optional<Execution> exec_;  // empty while measuring

  Embedding embedding_;
  Blocks<T> blocks_;
  Head head_;

  Vector<Token> tokens_;                 // [R]
  Vector<Index> sequences_, positions_;  // [R]
  Matrix<T> streams_[2];                 // [R,D]: before and after a half
  T* share_ = nullptr;                   // [R,D] with a tensor group
  Matrix<float> rotary_;                 // [tables * positions, head width] if they are rotary
  Matrix<T> normal_;                     // [S,D]: of the head
  NormStatistics statistics_;
  float* logits_;                               // [S,V], the ranks' columns in rank order
  std::vector<float> host_logits_{}, parts_{};  // [S,V]; parts_ in order of tensor ranks

  // Of the current pass.
  Index rows_ = 0;
  Matrix<T> x_;
};

template <class T>
TransformerDecoder<T>::TransformerDecoder(const deck::Model& model,
                                          const DecoderResources& resources,
                                          Units<const T> parameters, memory::Arenas arenas,
                                          std::shared_ptr<const void> owner)
    : owner_(std::move(owner)),
      arenas_(std::move(arenas)),
      shape_(model, resources.link.rank),
      decoder_(resources.shape),
      max_rows_(std::max(decoder_.rows, decoder_.sequences)),
      cache_{decoder_.sequences, decoder_.positions, shape_.own.heads, shape_.own.kv_heads,
             shape_.head_dim},
      link_(resources.link),
      group_(arenas_, resources.link, max_rows_, shape_.hidden),
      gemm_(resources.gemm),
      units_(parameters.begin(), parameters.end()),
      embedding_(declare<Embedding>(shape_, model)),
      blocks_(declare_blocks<T>(shape_, model)),
      head_(declare<Head>(shape_, model)) {
  const auto take = [&]<class U>(U, Category category, Index count) {
    return arenas_.take<U>(category, count);
  };
  const auto matrix = [&]<class U>(U type, Index rows, Index columns) {
    return Matrix<U>(take(type, Category::workspace, rows * columns), rows, columns);
  };
  tokens_ = Vector<Token>(take(Token{}, Category::io, max_rows_), max_rows_);
  sequences_ = Vector<Index>(take(Index{}, Category::io, max_rows_), max_rows_);
  positions_ = Vector<Index>(take(Index{}, Category::io, max_rows_), max_rows_);
  for (Matrix<T>& stream : streams_) stream = matrix(T{}, max_rows_, shape_.hidden);
  if (is_split()) share_ = take(T{}, Category::workspace, max_rows_ * shape_.hidden);
  if (shape_.positions == PositionKind::rotary)
    rotary_ = matrix(float{}, shape_.rotary_tables() * decoder_.positions, shape_.head_dim);
  Activations shared(arenas_, Category::workspace);
  normal_ = shared.take<T>(false, "head", decoder_.sequences, shape_.hidden);
  statistics_ = {shared, false, "mean", "rstd", shape_, decoder_.sequences};
  logits_ = take(float{}, Category::workspace, decoder_.sequences * shape_.vocab);
  for (const auto& block : blocks_) block->cache(arenas_, shared, cache_, max_rows_);
  const Index scratch_bytes =
      tensor::gemm_workspace_bytes(shape_.longest_bias() * bytes_of(dtype_of<T>));
  auto* const scratch = take(std::byte{}, Category::workspace, scratch_bytes);
  if (arenas_.measuring()) return;
  exec_.emplace();
  gemm_->use_workspace(scratch, scratch_bytes);
  fill(model);
}

template <class T>
void TransformerDecoder<T>::fill(const deck::Model& model) {
  host_logits_.resize(static_cast<std::size_t>(decoder_.sequences * shape_.vocab));
  if (is_split()) parts_.resize(host_logits_.size());
  for (const auto& block : blocks_) block->clear_cache(*exec_);
  if (shape_.positions != PositionKind::rotary) return;
  deck::Model as_long = model;
  as_long.sequence = decoder_.positions;
  copy_to_device(*exec_, rotary_tables(as_long), Vector<float>(rotary_.data(), rotary_.size()));
  exec_->fence("kzero::model::decoder_ready");  // before the tables are destroyed
}

template <class T>
std::span<const float> TransformerDecoder<T>::read(Index sequence, Index first,
                                                   std::span<const Token> tokens) {
  const Index count = static_cast<Index>(tokens.size());
  std::vector<PlacedToken> rows;
  for (Index begin = 0; begin < count; begin += decoder_.rows) {
    rows.clear();
    for (Index i = begin; i < std::min(count, begin + decoder_.rows); ++i)
      rows.push_back({tokens[i], sequence, first + i});
    run(rows, Products::library);
  }
  return logits(1);
}

template <class T>
std::span<const float> TransformerDecoder<T>::step(std::span<const PlacedToken> rows) {
  run(rows, Products::few_rows);
  return logits(static_cast<Index>(rows.size()));
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
  copy_to_device(*exec_, tokens, tokens_);
  copy_to_device(*exec_, sequences, sequences_);
  copy_to_device(*exec_, positions, positions_);
  exec_->fence("kzero::model::tokens_placed");  // before the host's copies are destroyed
}

template <class T>
void TransformerDecoder<T>::run(std::span<const PlacedToken> rows, Products products) {
  const std::size_t count = rows.size();
  rows_ = static_cast<Index>(count);
  place(rows);
  const CachedRows<T> pass{.exec = *exec_,
                           .gemm = gemm_,
                           .group = group_,
                           .products = products,
                           .places = {Vector<const Index>(sequences_.data(), count),
                                      Vector<const Index>(positions_.data(), count)},
                           .rotary = rotary_,
                           .share = share_};
  x_ = pass.of(streams_[0]);
  Matrix<T> other = pass.of(streams_[1]);
  embedding_.step<T>(pass, units_[0], tokens_, x_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i]->step(pass, units_[i + 1], x_, other);
}

/// Computes the logits of the last rows of the pass.
template <class T>
std::span<const float> TransformerDecoder<T>::logits(Index outputs) {
  const HeadParams<const T> head = head_.in(units_[0], units_[shape_.layers + 1]);
  const Matrix<const T> x(x_.data() + (rows_ - outputs) * shape_.hidden, outputs, shape_.hidden);
  const Matrix<T> normal(normal_.data(), outputs, shape_.hidden);
  norm_forward<T>(*exec_, shape_, head.norm, x, normal, statistics_);
  const Matrix<float> own(logits_ + outputs * shape_.own.first_token, outputs, shape_.own.vocab);
  kernels::few_rows_product<T, float>(*exec_, {normal, head.output, kernels::WeightOrder::out_in},
                                      own);
  const Index count = outputs * shape_.vocab;
  if (is_split()) {
    gather_logits(outputs);
  } else {
    copy_to_host(*exec_, logits_, host_logits_, count);
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
    receive.push_back(comm::Span::of(logits_ + outputs * part_begin(vocab, ranks, r),
                                     outputs * part_size(vocab, ranks, r)));
  const comm::Span own = receive[group_.rank()];
  link_.comm->all_gather(*exec_, {own.data, own.elements, own.dtype}, std::move(receive),
                         comm::Purpose::activations);
  copy_to_host(*exec_, logits_, parts_, outputs * vocab);
  exec_->fence("kzero::model::logits_copied");
  for (Index r = 0; r < ranks; ++r) {
    const Index begin = part_begin(vocab, ranks, r), count = part_size(vocab, ranks, r);
    for (Index i = 0; i < outputs; ++i)
      std::copy_n(parts_.begin() + outputs * begin + i * count, count,
                  host_logits_.begin() + i * vocab + begin);
  }
}

template <class T>
memory::Arenas measured(const deck::Model& model, DecoderResources resources) {
  resources.gemm = nullptr;
  resources.link.comm = nullptr;
  return TransformerDecoder<T>(model, resources, {}, {}).measured();
}

}  // namespace

template <class T>
std::unique_ptr<Decoder> make_decoder(const deck::Model& model, const DecoderResources& resources,
                                      Units<const T> parameters, memory::Ledger& ledger,
                                      std::shared_ptr<const void> owner) {
  return std::make_unique<TransformerDecoder<T>>(
      model, resources, parameters, memory::Arenas(measured<T>(model, resources), ledger),
      std::move(owner));
}

memory::Bytes decoder_bytes(const deck::Model& model, const DecoderResources& resources,
                            Dtype precision) {
  return with_type(precision, [&]<class T>(T) { return measured<T>(model, resources).bytes(); });
}

#define KZERO_INSTANTIATE(T)                                                                     \
  template std::unique_ptr<Decoder> make_decoder<T>(const deck::Model&, const DecoderResources&, \
                                                    Units<const T>, memory::Ledger&,             \
                                                    std::shared_ptr<const void>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
