#include "kernels/attention.hpp"
#include "kernels/exponential.hpp"

namespace kzero::kernels {

namespace {

/// Where the q, k, v of one head of one sequence begin in a [B*T,3D] array.
template <class T>
struct Head {
  T *q, *k, *v;
  Index stride;

  KOKKOS_INLINE_FUNCTION Head(const Matrix<T>& qkv, const AttentionShape& s, Index head)
      : q(&qkv(head / s.heads * s.sequence, head % s.heads * (s.width / s.heads))),
        k(q + s.width),
        v(q + 2 * s.width),
        stride(3 * s.width) {}
};

template <class A, class B>
KOKKOS_INLINE_FUNCTION float dot(const A* a, const B* b, Index n) {
  float total = 0;
  for (Index j = 0; j < n; ++j) total += static_cast<float>(a[j]) * static_cast<float>(b[j]);
  return total;
}

}  // namespace

// One team a query: it walks over the keys it sees twice, first for the log-sum-exp, then for the
// output.
template <class T>
void attention_forward_teams(const Execution& exec, const AttentionShape& s, Matrix<const T> qkv,
                             Matrix<T> out, Matrix<float> log_sum) {
  const Index d = s.head_width(), length = s.sequence;
  const float scale = 1.0F / Kokkos::sqrt(static_cast<float>(d));
  Kokkos::parallel_for(
      "kzero::kernels::attention_forward_teams",
      Policy(exec, static_cast<int>(s.batch * s.heads * length), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index head = team.league_rank() / length, i = team.league_rank() % length;
        const Head<const T> x(qkv, s, head);
        const T* q = x.q + i * x.stride;
        const auto score = [=](Index j) { return scale * dot(q, x.k + j * x.stride, d); };
        const float largest = max(team, i + 1, score);
        const float total =
            sum(team, i + 1, [=](Index j) { return exponential(score(j) - largest); });
        const float log_total = largest + Kokkos::log(total);
        T* target = &out(head / s.heads * length + i, head % s.heads * d);
        for (Index c = 0; c < d; ++c) {
          const float value = sum(team, i + 1, [=](Index j) {
            return exponential(score(j) - log_total) * static_cast<float>(x.v[j * x.stride + c]);
          });
          Kokkos::single(Kokkos::PerTeam(team), [=]() { target[c] = static_cast<T>(value); });
        }
        Kokkos::single(Kokkos::PerTeam(team), [=]() { log_sum(head, i) = log_total; });
      });
}

// One team a position t: as a query it gathers dq from the keys before it, as a key dk and dv from
// the queries after it. Nothing is shared between teams, so no atomics and one fixed order.
template <class T>
void attention_backward_teams(const Execution& exec, const AttentionShape& s, Matrix<const T> qkv,
                              Matrix<const T> out, Matrix<const float> log_sum,
                              Matrix<const T> dout, Matrix<T> dqkv) {
  const Index d = s.head_width(), length = s.sequence, width = s.width;
  const float scale = 1.0F / Kokkos::sqrt(static_cast<float>(d));
  Kokkos::parallel_for(
      "kzero::kernels::attention_backward_teams",
      Policy(exec, static_cast<int>(s.batch * s.heads * length), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index head = team.league_rank() / length, t = team.league_rank() % length;
        const Head<const T> x(qkv, s, head);
        const Head<T> gradient(dqkv, s, head);
        const T* o = &out(head / s.heads * length, head % s.heads * d);
        const T* g = &dout(head / s.heads * length, head % s.heads * d);
        const float* logs = &log_sum(head, 0);
        const auto probability = [=](Index i, Index j) {
          return exponential(scale * dot(x.q + i * x.stride, x.k + j * x.stride, d) - logs[i]);
        };
        const auto dscore = [=](Index i, Index j) {
          const T* gi = g + i * width;
          return scale * probability(i, j) *
                 (dot(gi, x.v + j * x.stride, d) - dot(gi, o + i * width, d));
        };
        for (Index c = 0; c < d; ++c) {
          const float dq = sum(team, t + 1, [=](Index j) {
            return dscore(t, j) * static_cast<float>(x.k[j * x.stride + c]);
          });
          const float dk = sum(team, length - t, [=](Index i) {
            return dscore(t + i, t) * static_cast<float>(x.q[(t + i) * x.stride + c]);
          });
          const float dv = sum(team, length - t, [=](Index i) {
            return probability(t + i, t) * static_cast<float>(g[(t + i) * width + c]);
          });
          Kokkos::single(Kokkos::PerTeam(team), [=]() {
            gradient.q[t * x.stride + c] = static_cast<T>(dq);
            gradient.k[t * x.stride + c] = static_cast<T>(dk);
            gradient.v[t * x.stride + c] = static_cast<T>(dv);
          });
        }
      });
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void attention_forward_teams<T>(const Execution&, const AttentionShape&,                \
                                           Matrix<const T>, Matrix<T>, Matrix<float>);             \
  template void attention_backward_teams<T>(const Execution&, const AttentionShape&,               \
                                            Matrix<const T>, Matrix<const T>, Matrix<const float>, \
                                            Matrix<const T>, Matrix<T>);
KZERO_INSTANTIATE(float)
KZERO_INSTANTIATE(bf16)
KZERO_INSTANTIATE(fp16)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
