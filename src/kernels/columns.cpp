#include "kernels/columns.hpp"

namespace kzero::kernels {

namespace {

/// Calls f(element of a matrix, its place in the first part that has it, the number of copies, the
/// elements from copy to copy) for the columns of each part, or of each first copy only.
template <class T, class F>
void for_each_column(const Execution& exec, const char* label, const SideBySide<T>& matrices,
                     Index parts, bool first_copies, const F& f) {
  const Index rows = matrices.rows, width = matrices.part(parts);
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(parts * rows), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index part = team.league_rank() / rows, row = team.league_rank() % rows;
        Index at = team.league_rank() * width;
        for (const Columns<T>& matrix : matrices.matrix) {
          const Index own = matrix.part(parts), begin = at;
          at += own;
          if (own == 0 || (first_copies && part % matrix.copies != 0)) continue;
          T* const first = matrix.data + row * matrix.stride + part / matrix.copies * own;
          const Index copies = matrix.copies;
          for_each(team, own, [=](Index j) { f(first[j], begin + j, copies, rows * width); });
        }
      });
}

}  // namespace

template <class T>
void split_columns(const Execution& exec, const SideBySide<const T>& from, Index parts, T* to) {
  for_each_column<const T>(
      exec, "kzero::kernels::split_columns", from, parts, false,
      KOKKOS_LAMBDA(const T& element, Index place, Index, Index) { to[place] = element; });
}

template <class T>
void join_columns(const Execution& exec, const T* from, Index parts, const SideBySide<T>& to) {
  for_each_column<T>(
      exec, "kzero::kernels::join_columns", to, parts, true,
      KOKKOS_LAMBDA(T & element, Index place, Index copies, Index stride) {
        float sum = static_cast<float>(from[place]);
        for (Index i = 1; i < copies; ++i) sum += static_cast<float>(from[place + i * stride]);
        element = static_cast<T>(sum);
      });
}

#define KZERO_INSTANTIATE(T)                                                               \
  template void split_columns<T>(const Execution&, const SideBySide<const T>&, Index, T*); \
  template void join_columns<T>(const Execution&, const T*, Index, const SideBySide<T>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
