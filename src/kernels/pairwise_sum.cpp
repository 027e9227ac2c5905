#include "kernels/pairwise_sum.hpp"

#include "base/error.hpp"

namespace kzero::kernels {

namespace {

KOKKOS_INLINE_FUNCTION float* open_sum(const OpenSums& open, int number) {
  return number == 0 ? open.oldest : open.others + (number - 1) * open.stride;
}

/// Adds terms by calls of four functions, which work on a stack of sums: start(i, term) sets sum i
/// to a term, add(i, term) adds a term to sum i, merge(i) adds sum i + 1 to sum i. `depth` is the
/// number of sums on the stack. Returns the new number.
template <class Start, class Add, class Merge>
KOKKOS_INLINE_FUNCTION int push_terms(const Terms& terms, int count, int depth, const Start& start,
                                      const Add& add, const Merge& merge) {
  for (int term = 0; term < count; ++term) {
    const Index number = terms.first + term;
    if (number % terms.block == 0) {
      start(depth++, term);
    } else {
      add(depth - 1, term);
    }
    if ((number + 1) % terms.block != 0) continue;
    for (Index blocks = (number + 1) / terms.block; blocks % 2 == 0; blocks /= 2)
      merge(--depth - 1);
  }
  for (; terms.ends && depth > 1; --depth) merge(depth - 2);
  return depth;
}

/// Adds elements [begin, begin + count), sum by sum over a few elements. Compilers vectorize these
/// loops.
template <class T, class Out>
void add_on_host(const RankValues<T>& v, const Terms& terms, const OpenSums& open, int depth,
                 Index begin, Index count, Out* out) {
  float sums[max_open_sums][column_block];
  for (int s = 0; s < depth; ++s) {
    const float* from = open_sum(open, s) + begin;
    detail::host_for(count, [&](Index i) { sums[s][i] = from[i]; });
  }
  const auto start = [&](int s, int term) {
    const T* from = values_of(v, term) + begin;
    detail::host_for(count, [&](Index i) { sums[s][i] = static_cast<float>(from[i]); });
  };
  const auto add = [&](int s, int term) {
    const T* from = values_of(v, term) + begin;
    detail::host_for(count, [&](Index i) { sums[s][i] += static_cast<float>(from[i]); });
  };
  const auto merge = [&](int s) {
    detail::host_for(count, [&](Index i) { sums[s][i] += sums[s + 1][i]; });
  };
  depth = push_terms(terms, v.ranks, depth, start, add, merge);
  if (terms.ends) {
    detail::host_for(count, [&](Index i) { out[begin + i] = static_cast<Out>(sums[0][i]); });
    return;
  }
  for (int s = 0; s < depth; ++s) {
    float* to = open_sum(open, s) + begin;
    detail::host_for(count, [&](Index i) { to[i] = sums[s][i]; });
  }
}

template <class T, class Out>
KOKKOS_INLINE_FUNCTION void add_on_device(const Team& team, const RankValues<T>& v,
                                          const Terms& terms, const OpenSums& open, int depth,
                                          Index begin, Index count, Out* out) {
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count), [=](Index column) {
    const Index i = begin + column;
    float sums[max_open_sums];
    for (int s = 0; s < depth; ++s) sums[s] = open_sum(open, s)[i];
    const int left = push_terms(
        terms, v.ranks, depth,
        [&](int s, int term) { sums[s] = static_cast<float>(values_of(v, term)[i]); },
        [&](int s, int term) { sums[s] += static_cast<float>(values_of(v, term)[i]); },
        [&](int s) { sums[s] += sums[s + 1]; });
    if (terms.ends) {
      out[i] = static_cast<Out>(sums[0]);
    } else {
      for (int s = 0; s < left; ++s) open_sum(open, s)[i] = sums[s];
    }
  });
}

template <class T, class Out>
KOKKOS_INLINE_FUNCTION void add_columns(const Team& team, const RankValues<T>& v,
                                        const Terms& terms, const OpenSums& open, int depth,
                                        Index begin, Index count, Out* out) {
  if constexpr (tensor::on_host) {
    add_on_host(v, terms, open, depth, begin, count, out);
  } else {
    add_on_device(team, v, terms, open, depth, begin, count, out);
  }
}

}  // namespace

template <class T, class Out>
void add_terms(const Execution& exec, const RankValues<T>& values, const Terms& terms,
               const OpenSums& open, Vector<Out> out) {
  const Index count = out.extent(0);
  if (count == 0) return;
  const int depth = open_sums(terms.first, terms.block);
  KZERO_EXPECT(values.ranks > 0 || depth > 0);
  const RankValues<T> v = values;
  Kokkos::parallel_for(
      "kzero::kernels::add_terms",
      Policy(exec, static_cast<int>(ceil_div(count, column_block)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index begin = team.league_rank() * column_block;
        const Index columns = Kokkos::min(Index{column_block}, count - begin);
        add_columns(team, v, terms, open, depth, begin, columns, out.data());
      });
}

#define KZERO_INSTANTIATE(T)                                                          \
  template void add_terms<T, T>(const Execution&, const RankValues<T>&, const Terms&, \
                                const OpenSums&, Vector<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE
template void add_terms<bf16, float>(const Execution&, const RankValues<bf16>&, const Terms&,
                                     const OpenSums&, Vector<float>);
template void add_terms<fp16, float>(const Execution&, const RankValues<fp16>&, const Terms&,
                                     const OpenSums&, Vector<float>);
template void add_terms<float, bf16>(const Execution&, const RankValues<float>&, const Terms&,
                                     const OpenSums&, Vector<bf16>);
template void add_terms<float, fp16>(const Execution&, const RankValues<float>&, const Terms&,
                                     const OpenSums&, Vector<fp16>);

}  // namespace kzero::kernels
