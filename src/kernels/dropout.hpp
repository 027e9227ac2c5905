// Dropout (Srivastava et al., JMLR 15, 2014): an element becomes zero with probability p, and is
// divided by 1 - p otherwise. No mask is stored. Backward and recomputation draw the same mask
// again. A draw depends on the seed and on the element's place in the full model and in the
// training (base/philox.hpp), and on nothing else.
#pragma once

#include "base/philox.hpp"
#include "kernels/documents.hpp"
#include "kernels/row.hpp"

namespace kzero::kernels {

/// The masks of one layer that drops elements, for one micro-batch.
struct Dropout {
  std::uint64_t key = 0;        // from the seed
  std::uint64_t sequences = 0;  // counter of the first sequence; the next one's is one step larger
  std::uint32_t threshold = 0;  // draws below drop: p * 2^32; 0: nothing is dropped
  float scale = 1;              // of kept elements: 1 / (1 - p), times any factor

  static constexpr std::uint64_t step = 1U << 16U;  // between sequences; the numbers of layers

  bool drops() const { return threshold > 0; }
  /// Whether it changes anything.
  bool is_on() const { return drops() || scale != 1; }
};

/// Returns the masks of layer `layer`, which is below Dropout::step. The micro-batch's sequences
/// are numbered from `first_sequence` on over the entire training. 0 <= p < 1.
Dropout make_dropout(double p, std::uint64_t seed, Index layer, Index first_sequence);

/// The draws of the rows of one sequence. Each row has `width` elements. 64 neighbouring elements
/// are a group, which begins at a multiple of 64 and takes 16 draws of four words. Word w of draw c
/// decides on element 16 w + c, so that both 16 vector lanes of a host and 16 threads of a device
/// draw for neighbours.
struct DropoutRows {
  static constexpr int lanes = 16, group = 4 * lanes;

  std::uint64_t key, sequence;
  std::uint32_t threshold;
  float scale;
  Index groups;  // of a row

  KOKKOS_INLINE_FUNCTION DropoutRows(const Dropout& dropout, Index number, Index width)
      : key(dropout.key),
        sequence(dropout.sequences + static_cast<std::uint64_t>(number) * Dropout::step),
        threshold(dropout.threshold),
        scale(dropout.scale),
        groups((width + group - 1) / group) {}

  /// Draw `lane` of a group.
  KOKKOS_INLINE_FUNCTION Philox4 draw(Index row, Index group_in_row, int lane) const {
    return philox(key, static_cast<std::uint64_t>((row * groups + group_in_row) * lanes + lane),
                  sequence);
  }

  /// The word that decides on one element. Chosen by comparisons, for a GPU's registers have no
  /// index.
  KOKKOS_INLINE_FUNCTION std::uint32_t word(Index row, Index column) const {
    const int in_group = static_cast<int>(column % group), chosen = in_group / lanes;
    const Philox4 drawn = draw(row, column / group, in_group % lanes);
    const std::uint32_t low = chosen == 0 ? drawn.word[0] : drawn.word[1];
    const std::uint32_t high = chosen == 2 ? drawn.word[2] : drawn.word[3];
    return chosen < 2 ? low : high;
  }

  /// Returns x * scale, or 0 if it is dropped.
  KOKKOS_INLINE_FUNCTION float apply(std::uint32_t word, float x) const {
    return word < threshold ? 0.0F : x * scale;
  }

  /// Draws the words of all elements of a group.
  void draw_group(Index row, Index group_in_row, std::uint32_t (&words)[group]) const {
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      const Philox4 drawn = draw(row, group_in_row, lane);
      words[lane] = drawn.word[0], words[lanes + lane] = drawn.word[1];
      words[2 * lanes + lane] = drawn.word[2], words[3 * lanes + lane] = drawn.word[3];
    }
  }
};

/// Computes to [n,D] = from with dropout. to may be from.
template <class T>
void drop(const Execution& exec, const Dropout& dropout, const StreamRows& rows,
          Matrix<const T> from, Matrix<T> to);

/// Computes x [n,D] = addend + x with dropout, rounded once.
template <class T>
void add_dropped(const Execution& exec, const Dropout& dropout, const StreamRows& rows,
                 Matrix<const T> addend, Matrix<T> x);

}  // namespace kzero::kernels
