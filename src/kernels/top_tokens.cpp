#include "kernels/top_tokens.hpp"

namespace kzero::kernels {

namespace {

/// The number of a row's candidates that come before a logit: larger ones, and equal ones of ranks
/// before its own. The row's candidates are in order.
KOKKOS_INLINE_FUNCTION Index count_before(const Candidates& all, Index row, float logit,
                                          bool equal_ones) {
  Index begin = 0, end = all.logits.extent(1);
  while (begin < end) {
    const Index middle = (begin + end) / 2;
    const float other = all.logits(row, middle);
    const bool is_before = other > logit || (equal_ones && other == logit);
    if (is_before) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

}  // namespace

void find_candidates(const Execution& exec, StridedMatrix<const float> logits, Index first_token,
                     Vector<const Token> targets, const Candidates& candidates) {
  const Index held = logits.extent(1), count = candidates.tokens.extent(1);
  const Candidates found = candidates;
  Kokkos::parallel_for(
      "kzero::kernels::find_candidates", tensor::Range(exec, 0, logits.extent(0)),
      KOKKOS_LAMBDA(Index i) {
        if (targets(i) < 0) return;
        constexpr float none = -Kokkos::Experimental::infinity_v<float>;
        for (Index j = 0; j < count; ++j) {
          found.tokens(i, j) = 0;
          found.logits(i, j) = none;
        }
        float least = none;
        for (Index token = 0; token < held; ++token) {
          const float logit = logits(i, token);
          if (!(logit > least)) continue;
          Index at = count - 1;
          for (; at > 0 && found.logits(i, at - 1) < logit; --at) {
            found.logits(i, at) = found.logits(i, at - 1);
            found.tokens(i, at) = found.tokens(i, at - 1);
          }
          found.logits(i, at) = logit;
          found.tokens(i, at) = static_cast<Token>(first_token + token);
          least = found.logits(i, count - 1);
        }
      });
}

void merge_candidates(const Execution& exec, const Candidates& candidates,
                      const PartialSoftmaxes& softmaxes, Vector<const Token> targets,
                      const TopTokens& top) {
  const Index rows = top.tokens.extent(0), count = top.tokens.extent(1);
  const Candidates all = candidates;
  const PartialSoftmaxes parts = softmaxes;
  const TopTokens out = top;
  Kokkos::parallel_for(
      "kzero::kernels::merge_candidates", tensor::Range(exec, 0, rows * count),
      KOKKOS_LAMBDA(Index item) {
        const Index i = item / count, j = item % count;
        if (targets(i) < 0) {
          out.tokens(i, j) = 0;
          out.ln_p(i, j) = 0;
          return;
        }
        const WholeRow whole(parts, i);
        const double log_total = Kokkos::log(static_cast<double>(whole.total));
        for (Index r = 0; r < parts.ranks; ++r) {
          const float logit = all.logits(r * rows + i, j);
          Index place = j;
          for (Index other = 0; other < parts.ranks; ++other) {
            if (other != r) place += count_before(all, other * rows + i, logit, other < r);
          }
          if (place >= count) continue;
          const double below = static_cast<double>(logit) - static_cast<double>(whole.largest);
          out.tokens(i, place) = all.tokens(r * rows + i, j);
          out.ln_p(i, place) = static_cast<float>(Kokkos::fmin(below - log_total, 0.0));
        }
      });
}

}  // namespace kzero::kernels
