#include "kernels/columns.hpp"

namespace kzero::kernels {

namespace {

/// Calls f(element of a matrix, its place in the parts) for all elements.
template <class T, class F>
void for_each_column(const Execution& exec, const char* label, const SideBySide<T>& matrices,
                     Index parts, const F& f) {
  const Index rows = matrices.rows, width = matrices.width() / parts;
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(parts * rows), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index part = team.league_rank() / rows, row = team.league_rank() % rows;
        Index at = team.league_rank() * width;
        for (const Columns<T>& matrix : matrices.matrix) {
          const Index own = matrix.width / parts;
          T* const first = matrix.data + row * matrix.stride + part * own;
          const Index begin = at;
          for_each(team, own, [=](Index j) { f(first[j], begin + j); });
          at += own;
        }
      });
}

}  // namespace

template <class T>
void split_columns(const Execution& exec, const SideBySide<const T>& from, Index parts, T* to) {
  for_each_column<const T>(
      exec, "kzero::kernels::split_columns", from, parts,
      KOKKOS_LAMBDA(const T& element, Index place) { to[place] = element; });
}

template <class T>
void join_columns(const Execution& exec, const T* from, Index parts, const SideBySide<T>& to) {
  for_each_column<T>(
      exec, "kzero::kernels::join_columns", to, parts,
      KOKKOS_LAMBDA(T & element, Index place) { element = from[place]; });
}

#define KZERO_INSTANTIATE(T)                                                               \
  template void split_columns<T>(const Execution&, const SideBySide<const T>&, Index, T*); \
  template void join_columns<T>(const Execution&, const T*, Index, const SideBySide<T>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
