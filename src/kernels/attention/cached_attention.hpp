// Attention of single rows to the cached keys and values of their sequences, as in generation:
// softmax(factor q K^T) V in fp32. Keys are read block by block with a running maximum (Milakov
// and Gimelshein, arXiv 1805.02867). A row's result does not depend on the other rows or on the
// number of threads.
#pragma once

#include <algorithm>

#include "kernels/attention/attention.hpp"

namespace kzero::kernels {

/// Adjacent keys of a cache: a block holds [d, cache_block] of one head.
inline constexpr Index cache_block = 64;

/// Positions may exceed the capacity: one takes the place of another, as many positions before as
/// there are places. Places are whole blocks, so a block always has adjacent positions, and a sum's
/// order is that of positions.
struct CacheShape {
  Index sequences = 0;   // S
  Index capacity = 0;    // positions per sequence that are kept
  Index heads = 0;       // H
  Index kv_heads = 0;    // K, a divisor of H
  Index head_width = 0;  // d

  Index blocks() const { return ceil_div(capacity, cache_block); }
  /// For rows that see a window. A call stores up to `rows` positions of a sequence before the
  /// first of them is computed.
  CacheShape in_window(Index window, Index rows) const {
    CacheShape shape = *this;
    shape.capacity = std::min(capacity, window + rows - 1);
    return shape;
  }
  /// Number of elements of the keys, and of the values.
  Index elements() const { return sequences * kv_heads * blocks() * cache_block * head_width; }
};

/// Keys [S, K, blocks, d, cache_block] and values [S, K, blocks * cache_block, d]. Both must start
/// as zeros.
template <class T>
struct KeyValueCache {
  T* keys = nullptr;
  T* values = nullptr;
};

/// The place of each row: its sequence in the cache and its position in that sequence.
struct RowPlaces {
  Vector<const Index> sequence, position;
};

/// Writes the rows' heads of keys and values [n, K d] to their places. Places must be distinct.
template <class T>
void store_keys_values(const Execution& exec, const CacheShape& shape, const RowPlaces& rows,
                       const HeadColumns<const T>& k, const HeadColumns<const T>& v,
                       const KeyValueCache<T>& cache);

/// Computes out [n, H d]. Each row's query heads attend to the positions up to its own: to all of
/// them, or with a window to its last ones. score_factor(scale, d) multiplies the scores.
template <class T>
void cached_attention(const Execution& exec, const CacheShape& shape, const RowPlaces& rows,
                      const HeadColumns<const T>& q, const KeyValueCache<T>& cache, Matrix<T> out,
                      Index window = 0, float scale = 0);

}  // namespace kzero::kernels
