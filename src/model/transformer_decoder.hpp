// The transformer's implementation of decoder.hpp. It runs the forward arithmetic of block.hpp and
// head.hpp on rows of any sequences and positions. Attention reads the cache.
#pragma once

#include <optional>
#include <vector>

#include "kernels/attention/cached_attention.hpp"
#include "model/block_parameters.hpp"
#include "model/decoder.hpp"

namespace kzero::model {

/// The temporaries of a pass of at most R rows. This tensor rank has d columns of q, e columns each
/// of k and v, and f feed-forward columns (2 f with SwiGLU).
template <class T>
struct DecoderBuffers {
  Vector<Token> tokens;                // [R]
  Vector<Index> sequences, positions;  // [R]
  T *x, *middle, *normal;              // [R,D]: the residual stream before and within a block
  T *qkv, *rotated, *attention;        // [R,d+2e] [R,d+e] or null, [R,d]
  T *hidden, *activated, *share;       // [R,f or 2f] [R,f], [R,D] with a group, else null
  float* logits;                       // [S,V], the ranks' columns in rank order
  Vector<float> mean, rstd;            // [R]
  Matrix<float> rotary;                // [positions, head width] for Llama

  DecoderBuffers(memory::Arenas& arenas, const TransformerShape& shape, const DecoderShape& decoder,
                 Index rows);
};

template <class T>
class TransformerDecoder : public Decoder<T> {
 public:
  TransformerDecoder(memory::Arenas& arenas, const deck::Model& model,
                     const DecoderResources& resources);

  std::span<const float> read(Units<const T> parameters, Index sequence, Index first,
                              std::span<const Token> tokens) override;
  std::span<const float> step(Units<const T> parameters,
                              std::span<const PlacedToken> rows) override;

 private:
  /// Selects the GEMM implementation: the library, whose rounding depends on the number of rows, or
  /// the kernel for few rows.
  enum class Products { library, few_rows };

  Matrix<T> rows_of(T* data, Index width) const { return Matrix<T>(data, rows_, width); }
  bool is_split() const { return group_.size() > 1; }
  kernels::RowPlaces places() const;
  void run(Units<const T> parameters, std::span<const PlacedToken> rows, Products products);
  void place(std::span<const PlacedToken> rows);
  void embed(const T* unit);
  void block(const BlockParams<const T>& p, const kernels::KeyValueCache<T>& cache);
  void attend(const BlockParams<const T>& p, const kernels::KeyValueCache<T>& cache);
  void norm(const Norm<const T>& p, const T* x, Index rows);
  void linear(const T* x, Index width, const Linear<const T>& layer, T* y, Index columns,
              const T* addend = nullptr);
  void row_parallel(const T* x, Index width, const Linear<const T>& layer, const T* addend, T* y);
  std::span<const float> logits(Units<const T> parameters, Index outputs);
  void gather_logits(Index outputs);

  TransformerShape shape_;
  DecoderShape decoder_;
  Index most_rows_;
  kernels::CacheShape cache_shape_;
  TensorLink link_;
  TensorGroup<T> group_;
  tensor::Gemm* gemm_;
  DecoderBuffers<T> b_;
  std::vector<kernels::KeyValueCache<T>> cache_;  // per block
  std::optional<Execution> exec_;                 // empty while measuring
  std::vector<float> host_logits_, parts_;        // [S,V]; parts_ in order of tensor ranks

  // Of the current pass.
  Index rows_ = 0;
  Products products_ = Products::library;
};

}  // namespace kzero::model
