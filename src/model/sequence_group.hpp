// The ranks that share each sequence (DeepSpeed-Ulysses, arXiv 2309.14509). A rank has all heads of
// its rows, and in attention all rows of its heads. Exchanges lead from one to the other. Attention
// computes complete heads, so its bits do not depend on the number of ranks.
#pragma once

#include "kernels/attention/attention.hpp"
#include "kernels/columns.hpp"
#include "model/model.hpp"
#include "model/shape.hpp"

namespace kzero::model {

/// Every function is collective over the group. Do not call any on a single rank.
template <class T>
class SequenceGroup {
 public:
  /// Allocates room for the queries, keys and values of `rows` rows from the workspace category, or
  /// nothing for a single rank.
  SequenceGroup(memory::Arenas& arenas, const SequenceLink& link, const TransformerShape& shape,
                Index rows);

  Index size() const { return link_.rank.size; }

  /// Exchanges this rank's rows of all heads, side by side in `rows`, for all rows [T, width /
  /// size] of this rank's heads.
  void to_heads(const Execution& exec, const kernels::SideBySide<const T>& rows,
                const Matrix<T>& heads) const;

  /// The inverse of to_heads. `rows` may be the memory of `heads`.
  void to_rows(const Execution& exec, const Matrix<const T>& heads,
               const kernels::SideBySide<T>& rows) const;

 private:
  template <class FromPart, class ToPart>
  void exchange(const Execution& exec, Index each, const FromPart& from, const ToPart& to) const;

  SequenceLink link_;
  Vector<T> parts_;  // [rows * columns of q, k and v]
};

}  // namespace kzero::model
