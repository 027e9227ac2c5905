// The blocks of query rows and keys of attention on hosts, and dropout in their rows.
#pragma once

#include <algorithm>

#include "kernels/attention/host_scratch.hpp"
#include "kernels/attention/mask.hpp"

namespace kzero::kernels::host {

/// A block of query rows of one head of a sequence, and its mask.
template <class Mask>
struct QueryBlock {
  Index first, rows;
  Mask mask;
  Index head;

  Index end() const { return first + rows; }
  /// The first block of keys that a row sees.
  Index first_key() const { return mask.first_key(first) / key_block * key_block; }
};

/// The rows of a query block that see a block of keys.
struct Seeing {
  Index begin, count;

  template <class Mask>
  Seeing(const QueryBlock<Mask>& block, Index first_key)
      : begin(std::max<Index>(0, first_key - block.first)),
        count(std::min(block.rows,
                       block.mask.end_of_queries(first_key + key_block - 1) - block.first) -
              begin) {}
};

static_assert(key_block % DropoutRows::group == 0);

/// Applies dropout to weights or their gradients in row i of a block, for keys [first_key,
/// first_key + columns), a multiple of both blocks.
template <class Mask>
void drop_weights(const QueryBlock<Mask>& block, Index i, Index first_key, Index columns,
                  float* row) {
  if constexpr (Mask::drops) {
    constexpr int group = DropoutRows::group;
    const DropoutRows& draws = block.mask.draws;
    const Index of_query = block.mask.draw_row(block.head, block.first + i);
    std::uint32_t words[group];
    for (Index j = 0; j < columns; j += group) {
      draws.draw_group(of_query, (first_key + j) / group, words);
      detail::host_for(
          group, [=, &draws, &words](Index k) { row[j + k] = draws.apply(words[k], row[j + k]); });
    }
  }
}

/// Without documents, all rows of a block see its first block of keys, whose product overwrites
/// sums. With documents they begin as zeros.
template <class Mask>
void begin_sums(float* sums, Index count) {
  if constexpr (Mask::has_documents) std::fill_n(sums, count, 0.0F);
}

}  // namespace kzero::kernels::host
