#include "kernels/distillation.hpp"

#include <limits>

namespace kzero::kernels {

namespace {

/// In place of a logit that was taken out. Its exponential is 0 next to any other.
constexpr float no_logit = std::numeric_limits<float>::lowest();

/// In place of a target that no rank has.
constexpr Token target_elsewhere = std::numeric_limits<Token>::max();

/// The most that p(R) / q(R) counts: times a probability of R that fp32 can hold, it stays finite.
constexpr double max_ratio = 1e30;

/// The softmax of R over all ranks, as a logarithm: q(R) may be less than fp32 can hold.
KOKKOS_INLINE_FUNCTION double log_of_rest(const PartialSoftmaxes& all, Index i, double log_z) {
  const Index rows = all.values.extent(0) / all.ranks;
  float largest = no_logit;
  for (Index r = 0; r < all.ranks; r += softmax_parts)
    largest = Kokkos::fmax(largest, all.values(r * rows + i, 0));
  double total = 0;
  for (Index r = 0; r < all.ranks; r += softmax_parts) {
    const Index at = r * rows + i;
    const double below = static_cast<double>(all.values(at, 0)) - static_cast<double>(largest);
    total += static_cast<double>(all.values(at, 1)) * Kokkos::exp(below);
  }
  return static_cast<double>(largest) + Kokkos::log(total) - log_z;
}

}  // namespace

void take_teachers_logits(const Execution& exec, const TeacherRows& teacher,
                          const StridedMatrix<float>& logits, Index first_token,
                          Vector<const Token> targets, const DistillationRows& rows,
                          Matrix<float> partial, Matrix<float> divergence) {
  const Index count = teacher.tokens.extent(1), held = logits.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::take_teachers_logits", tensor::Range(exec, 0, logits.extent(0)),
      KOKKOS_LAMBDA(Index i) {
        const Token target = targets(i);
        rows.targets(i) = target;
        for (Index j = 0; j < partial_softmax_width; ++j) partial(i, j) = 0;
        for (Index j = 0; j < divergence_width; ++j) divergence(i, j) = 0;
        if (target < 0) return;
        float largest = no_logit, at_target = 0;
        for (Index j = 0; j < count; ++j) {
          const Index token = teacher.tokens(i, j) - first_token;
          const bool mine = token >= 0 && token < held, is_target = teacher.tokens(i, j) == target;
          const float logit = mine ? logits(i, token) : no_logit;
          rows.logits(i, j) = logit;
          largest = Kokkos::fmax(largest, logit);
          if (mine) logits(i, token) = no_logit;
          if (mine && is_target) at_target = logit;
          if (is_target) rows.targets(i) = target_elsewhere;
        }
        double total = 0, sum = 0, mass = 0;
        for (Index j = 0; j < count; ++j) {
          const Index token = teacher.tokens(i, j) - first_token;
          if (token < 0 || token >= held) continue;
          const auto below = static_cast<double>(rows.logits(i, j)) - static_cast<double>(largest);
          const auto ln_p = static_cast<double>(teacher.ln_p(i, j));
          const double p = Kokkos::exp(ln_p);
          total += Kokkos::exp(below);
          sum += p * (ln_p - below);
          mass += p;
        }
        partial(i, 0) = largest;
        partial(i, 1) = static_cast<float>(total);
        partial(i, 2) = at_target;
        divergence(i, 0) = static_cast<float>(sum);
        divergence(i, 1) = static_cast<float>(mass);
      });
}

void divergences(const Execution& exec, const TeacherRows& teacher,
                 const PartialSoftmaxes& softmaxes, Matrix<const float> divergence, bool has_rest,
                 Vector<const Token> targets, const LossTerms& terms, const DistillationRows& rows,
                 Vector<float> kl) {
  const Index count = teacher.tokens.extent(1), chunk = kl.extent(0);
  const auto weight = static_cast<double>(teacher.weight);
  const PartialSoftmaxes all = softmaxes;
  const LossTerms of_chunk = terms;
  Kokkos::parallel_for(
      "kzero::kernels::divergences", tensor::Range(exec, 0, chunk), KOKKOS_LAMBDA(Index i) {
        kl(i) = 0;
        rows.softmax_factors(i) = 0;
        if (targets(i) < 0) return;
        const auto log_z = static_cast<double>(WholeRow(all, i).log_z());
        double sum = 0, rest = 1, ratio = 0;
        for (Index r = 0; r < all.ranks / softmax_parts; ++r) {
          const auto largest =
              static_cast<double>(all.values((softmax_parts * r + 1) * chunk + i, 0));
          sum += static_cast<double>(divergence(r * chunk + i, 0)) -
                 static_cast<double>(divergence(r * chunk + i, 1)) * (largest - log_z);
        }
        for (Index j = 0; j < count; ++j)
          rest -= Kokkos::exp(static_cast<double>(teacher.ln_p(i, j)));
        if (has_rest && rest > 0) {
          const double more = Kokkos::log(rest) - log_of_rest(all, i, log_z);
          sum += rest * more;
          ratio = Kokkos::fmin(Kokkos::exp(more), max_ratio);
        }
        const LossTerms of = of_chunk.of_row(i);
        kl(i) = static_cast<float>(sum);
        // d KL / d logit = q - p among the teacher's tokens, and q (1 - p(R) / q(R)) in R.
        rows.softmax_factors(i) =
            static_cast<float>(static_cast<double>(of.scale) *
                               (1 - weight * ratio + 2 * static_cast<double>(of.z_loss) * log_z));
      });
}

LossTerms terms_of_rest(const TeacherRows& teacher, const LossTerms& terms,
                        const DistillationRows& rows) {
  LossTerms rest = terms;
  rest.scale *= 1 - teacher.weight;
  rest.softmax_factors = rows.softmax_factors.data();
  return rest;
}

template <class T>
void set_teachers_gradient(const Execution& exec, const TeacherRows& teacher,
                           const PartialSoftmaxes& softmaxes, Index first_token, Index held,
                           Vector<const Token> targets, const LossTerms& terms,
                           const DistillationRows& rows, const StridedMatrix<T>& dlogits) {
  const Index count = teacher.tokens.extent(1);
  const float weight = teacher.weight;
  const PartialSoftmaxes all = softmaxes;
  const LossTerms of_chunk = terms;
  Kokkos::parallel_for(
      "kzero::kernels::set_teachers_gradient", tensor::Range(exec, 0, dlogits.extent(0)),
      KOKKOS_LAMBDA(Index i) {
        if (targets(i) < 0) return;
        const WholeRow whole(all, i);
        const LossTerms of = of_chunk.of_row(i);
        const float of_softmax = 1 + 2 * of.z_loss * whole.log_z();
        for (Index j = 0; j < count; ++j) {
          const Index token = teacher.tokens(i, j) - first_token;
          if (token < 0 || token >= held) continue;
          const float q = Kokkos::exp(rows.logits(i, j) - whole.largest) / whole.total;
          const float p = Kokkos::exp(teacher.ln_p(i, j));
          const float at_target = teacher.tokens(i, j) == targets(i) ? 1 - weight : 0.0F;
          dlogits(i, token) = static_cast<T>(of.scale * (of_softmax * q - weight * p - at_target));
        }
      });
}

#define KZERO_INSTANTIATE(T)                                                       \
  template void set_teachers_gradient<T>(                                          \
      const Execution&, const TeacherRows&, const PartialSoftmaxes&, Index, Index, \
      Vector<const Token>, const LossTerms&, const DistillationRows&, const StridedMatrix<T>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
