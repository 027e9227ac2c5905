// The router of a mixture of experts: which experts a row chooses, and rows sorted by expert. E is
// the number of experts and k that of choices per row; tensor/view.hpp has the other shapes. Every
// result has a fixed order of additions, and integers are counted exactly, so no bit depends on the
// number of threads.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/documents.hpp"
#include "kernels/row.hpp"

namespace kzero::kernels {

/// The sorted rows of each expert begin at a multiple of this number. Those up to the next multiple
/// are padding.
inline constexpr Index expert_block = 32;

/// The most sorted rows that there can be, whatever the router does: each expert that is chosen has
/// up to expert_block - 1 rows of padding. A multiple of expert_block.
constexpr Index max_sorted_rows(Index rows, Index experts, Index per_token) {
  const Index choices = rows * per_token;
  return (choices + std::min(experts, choices) * (expert_block - 1)) / expert_block * expert_block;
}

/// The choices of rows [n,k], in the order of choose_experts.
struct Choices {
  Matrix<std::int32_t> experts;
  Matrix<float> gates;  // the factors on the experts' results
  /// [n], the factor on the result of a shared expert, which computes all rows; empty: there is
  /// none. Otherwise logits have its logit in column E, after those of the experts.
  Vector<float> shared{};
};

/// How a router scores experts, and what its gates are.
struct Scoring {
  bool is_sigmoid = false;  // scores p are sigmoid(logits); else softmax(logits)
  bool normalizes = true;   // gates are divided by their sum
};

/// Computes the experts with the k largest p + bias of each row of logits [n,E], in falling order,
/// and the sigmoid of the shared expert's logit.
/// Of equal ones, the lower expert comes first. The gates are p, divided by their sum if the
/// scoring normalizes. bias [E] is for the choice alone and may be null. Choices of a row with NaN
/// are experts of the model, and their gates are NaN. 1 <= k <= E.
template <class T>
void choose_experts(const Execution& exec, Matrix<const float> logits, const Scoring& scoring,
                    const T* bias, const Choices& choices);

/// Rows sorted by expert, and by row in an expert. Choice i * k + j is the j-th of row i.
struct SortedChoices {
  Matrix<std::int32_t> places;   // [n,k], the sorted row of each choice
  Vector<std::int32_t> choices;  // [max_sorted_rows]: of each sorted row; -1 for padding and unused
  Vector<std::int32_t> begin;    // [E+1], the first sorted row of each expert; last: rows in use
};

/// Sorts choices [n,k] by expert. A row has chosen an expert at most once.
void sort_choices(const Execution& exec, Matrix<const std::int32_t> experts,
                  const SortedChoices& sorted);

/// Which of a chunk's rows count in balance and metrics: all but padding. A row of packed documents
/// is padding if it is a document of its own and has no target (data/packed_documents.cpp).
class CountedRows {
 public:
  /// The chunk is `rows` of the documents' micro-batch. targets [n] are the chunk's own.
  CountedRows(const Documents& documents, Vector<const Token> targets, const StreamRows& rows)
      : begin_(documents.empty() ? nullptr : documents.begin.data() + rows.first),
        end_(documents.empty() ? nullptr : documents.end.data() + rows.first),
        targets_(targets.data()) {}

  KOKKOS_INLINE_FUNCTION bool operator()(Index i) const {
    return begin_ == nullptr || end_[i] - begin_[i] > 1 || targets_[i] >= 0;
  }

 private:
  const std::int32_t *begin_, *end_;  // null if there are no documents
  const Token* targets_;
};

/// Computes counts [E]: how many of the choices [n,k] of rows that count are each expert.
void count_choices(const Execution& exec, Matrix<const std::int32_t> experts,
                   const CountedRows& counted, Vector<std::int32_t> counts);

/// Adds counts [E] to sums [E], integers of 64 bits.
template <class Sum>
void add_counts(const Execution& exec, Vector<const std::int32_t> counts, Vector<Sum> sums);

/// The factors of a router's own losses. They contain the loss scale.
struct RouterLosses {
  float balance = 0, z = 0;
};

/// Computes dlogits [n,E] or, with a shared expert's gate, [n,E+1], the gradient of
///
///     sum of dgates * gates  +  balance * E * sum_e f_e P_e  +  z * mean of log(Z)^2
///
/// Z is the sum of exp(logits) of a row. The means and P_e, the mean of expert e's probability, are
/// over the m = sum(counts) / k rows that count. f_e = counts_e / (m k) has no gradient. Rows that
/// do not count have neither of the two losses, which are those of softmax: with sigmoid they must
/// be 0. `choices` and `scoring` are those of choose_experts, whose bias has no gradient. dgates
/// [n,k], and of the shared expert's gate [n].
template <class T>
void router_backward(const Execution& exec, Matrix<const float> logits, const Choices& choices,
                     Matrix<const float> dgates, Vector<const float> dshared,
                     const Scoring& scoring, const CountedRows& counted,
                     Vector<const std::int32_t> counts, const RouterLosses& losses,
                     Matrix<T> dlogits);

/// Adds values in host memory to as many elements in the memory of `exec`. Copies the values before
/// it returns.
void add_values(const Execution& exec, std::span<const float> values, float* to);

}  // namespace kzero::kernels
