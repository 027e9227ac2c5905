// Cross-entropy with one thread per row. It replaces the logits by exp(logit - largest) and
// computes their gradient from that.
#include "kernels/softmax_cross_entropy.hpp"

#include <algorithm>

namespace kzero::kernels {

namespace {

struct HostSoftmax {
  float largest, total;
};

/// Replaces the logits of a row [n] by their exponentials relative to the largest.
HostSoftmax take_exponentials(Index n, float* row) {
  const float largest = detail::host_max(n, [=](Index j) { return row[j]; });
  detail::map_vectors(
      n, row, [=](auto x) { return exponential(x - largest); }, row);
  return {largest, detail::host_sum(n, [=](Index j) { return row[j]; })};
}

}  // namespace

template <>
void CrossEntropyBy<RowByThread>::forward(const Execution& exec, StridedMatrix<const float> logits,
                                          Vector<const Token> targets, Vector<float> losses) {
  const Index vocab = logits.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_forward", tensor::Range(exec, 0, logits.extent(0)),
      KOKKOS_LAMBDA(Index i) {
        if (targets(i) < 0) {
          losses(i) = 0;
          return;
        }
        const float* row = &logits(i, 0);
        const float largest = detail::host_max(vocab, [=](Index j) { return row[j]; });
        const float total =
            detail::host_sum(vocab, [=](Index j) { return exponential(row[j] - largest); });
        losses(i) = largest + Kokkos::log(total) - row[targets(i)];
      });
}

template <>
template <class T>
void CrossEntropyBy<RowByThread>::with_gradient(const Execution& exec, StridedMatrix<float> logits,
                                                Vector<const Token> targets, const LossTerms& terms,
                                                Vector<float> losses, StridedMatrix<T> dlogits) {
  const Index vocab = logits.extent(1), columns = dlogits.extent(1);
  const LossTerms all = terms;
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_with_gradient", tensor::Range(exec, 0, logits.extent(0)),
      KOKKOS_LAMBDA(Index i) {
        float* row = &logits(i, 0);
        T* out = &dlogits(i, 0);
        const Index target = targets(i);
        if (target < 0) {
          losses(i) = 0;
          std::fill_n(out, columns, static_cast<T>(0.0F));
          return;
        }
        const float at_target = row[target];
        const LossTerms of = all.of_row(i);
        const HostSoftmax softmax = take_exponentials(vocab, row);
        const float log_z = softmax.largest + Kokkos::log(softmax.total);
        const float factor = of.of_softmax(log_z) / softmax.total, probability = row[target];
        detail::map_vectors(
            vocab, out, [=](auto x) { return x * factor; }, row);
        std::fill(out + vocab, out + columns, static_cast<T>(0.0F));
        losses(i) = log_z - at_target;
        out[target] = static_cast<T>(probability * factor - of.scale);
      });
}

template <>
void CrossEntropyBy<RowByThread>::partial_softmax(const Execution& exec,
                                                  StridedMatrix<float> logits, Index first_token,
                                                  Vector<const Token> targets,
                                                  Matrix<float> partial) {
  const Index held = logits.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::partial_softmax", tensor::Range(exec, 0, logits.extent(0)),
      KOKKOS_LAMBDA(Index i) {
        const Index target = targets(i) - first_token;
        if (targets(i) < 0) {
          for (Index j = 0; j < partial_softmax_width; ++j) partial(i, j) = 0;
          return;
        }
        float* row = &logits(i, 0);
        partial(i, 2) = target >= 0 && target < held ? row[target] : 0.0F;
        const HostSoftmax softmax = take_exponentials(held, row);
        partial(i, 0) = softmax.largest;
        partial(i, 1) = softmax.total;
      });
}

template <>
template <class T>
void CrossEntropyBy<RowByThread>::of_partials_with_gradient(
    const Execution& exec, const PartialSoftmaxes& partials, const SplitLogits& logits,
    Vector<const Token> targets, const LossTerms& terms, Vector<float> losses,
    StridedMatrix<T> dlogits) {
  const LossTerms all = terms;
  const Index held = logits.values.extent(1), rows = logits.values.extent(0);
  const Index columns = dlogits.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_of_partials_with_gradient", tensor::Range(exec, 0, rows),
      KOKKOS_LAMBDA(Index i) {
        const Index target = targets(i) - logits.first_token;
        const float* row = &logits.values(i, 0);
        T* out = &dlogits(i, 0);
        if (targets(i) < 0) {
          losses(i) = 0;
          std::fill_n(out, columns, static_cast<T>(0.0F));
          return;
        }
        const LossTerms of = all.of_row(i);
        const WholeRow whole(partials, i);
        const float largest = partials.values(partials.rank * rows + i, 0);
        const float factor =
            of.of_softmax(whole.log_z()) * Kokkos::exp(largest - whole.largest) / whole.total;
        const bool mine = target >= 0 && target < held;
        const float probability = mine ? row[target] : 0.0F;
        detail::map_vectors(
            held, out, [=](auto x) { return x * factor; }, row);
        std::fill(out + held, out + columns, static_cast<T>(0.0F));
        losses(i) = whole.loss();
        if (mine) out[target] = static_cast<T>(probability * factor - of.scale);
      });
}

#define KZERO_INSTANTIATE(T)                                                              \
  template void CrossEntropyBy<RowByThread>::with_gradient<T>(                            \
      const Execution&, StridedMatrix<float>, Vector<const Token>, const LossTerms&,      \
      Vector<float>, StridedMatrix<T>);                                                   \
  template void CrossEntropyBy<RowByThread>::of_partials_with_gradient<T>(                \
      const Execution&, const PartialSoftmaxes&, const SplitLogits&, Vector<const Token>, \
      const LossTerms&, Vector<float>, StridedMatrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
