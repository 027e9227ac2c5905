#include "kernels/columns.hpp"

namespace kzero::kernels {

namespace {

/// A row of one part: what a team processes.
struct PartRow {
  Index parts, part, row;
  Index stride;  // elements from part to part
  bool first_copies;
};

/// Calls f(element of a matrix, its place in this part, the number of copies, the elements from
/// copy to copy) for the columns of a part that begin at `at`. Returns where the next ones begin.
template <class T, class F>
KOKKOS_INLINE_FUNCTION Index for_part(const Team& team, const Columns<T>& matrix, const PartRow& of,
                                      Index at, const F& f) {
  const Index own = matrix.part(of.parts), copies = matrix.copies, stride = of.stride;
  if (own == 0 || (of.first_copies && of.part % copies != 0)) return at + own;
  T* const first = matrix.data + of.row * matrix.stride + of.part / copies * own;
  for_each(team, own, [=](Index j) { f(first[j], at + j, copies, stride); });
  return at + own;
}

/// Calls f for the columns of each part, or of each first copy only.
template <class T, class F>
void for_each_column(const Execution& exec, const char* label, const SideBySide<T>& matrices,
                     Index parts, bool first_copies, const F& f) {
  const Index rows = matrices.rows, width = matrices.part(parts);
  // Without an array, whose index registers cannot be.
  const Columns<T> a = matrices.matrix[0], b = matrices.matrix[1], c = matrices.matrix[2];
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(parts * rows), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index number = team.league_rank();
        const PartRow of{parts, number / rows, number % rows, rows * width, first_copies};
        Index at = for_part(team, a, of, number * width, f);
        at = for_part(team, b, of, at, f);
        for_part(team, c, of, at, f);
      });
}

}  // namespace

template <class T>
void split_columns(const Execution& exec, const SideBySide<const T>& from, Index parts,
                   Vector<T> to) {
  for_each_column<const T>(
      exec, "kzero::kernels::split_columns", from, parts, false,
      KOKKOS_LAMBDA(const T& element, Index place, Index, Index) { to(place) = element; });
}

template <class T>
void join_columns(const Execution& exec, Vector<const T> from, Index parts,
                  const SideBySide<T>& to) {
  for_each_column<T>(
      exec, "kzero::kernels::join_columns", to, parts, true,
      KOKKOS_LAMBDA(T & element, Index place, Index copies, Index stride) {
        float sum = static_cast<float>(from(place));
        for (Index i = 1; i < copies; ++i) sum += static_cast<float>(from(place + i * stride));
        element = static_cast<T>(sum);
      });
}

#define KZERO_INSTANTIATE(T)                                                                      \
  template void split_columns<T>(const Execution&, const SideBySide<const T>&, Index, Vector<T>); \
  template void join_columns<T>(const Execution&, Vector<const T>, Index, const SideBySide<T>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
