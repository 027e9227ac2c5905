#include "model/sequence_group.hpp"

namespace kzero::model {

using comm::ConstSpan;
using comm::Span;

template <class T>
SequenceGroup<T>::SequenceGroup(memory::Arenas& arenas, const SequenceLink& link,
                                const TransformerShape& shape, Index rows)
    : link_(link) {
  if (size() == 1) return;
  const Index elements = rows * shape.exchanged_width();
  parts_ = Vector<T>(arenas.take<T>(memory::Category::workspace, elements), elements);
}

/// Sends from(r) [each] to rank r and receives to(r) from it.
template <class T>
template <class FromPart, class ToPart>
void SequenceGroup<T>::exchange(const Execution& exec, Index each, const FromPart& from,
                                const ToPart& to) const {
  std::vector<ConstSpan> send;
  std::vector<Span> receive;
  for (Index r = 0; r < size(); ++r) {
    send.push_back(ConstSpan::of(from(r), each));
    receive.push_back(Span::of(to(r), each));
  }
  const Index own = link_.rank.rank;
  const auto count = static_cast<std::size_t>(each);
  const comm::Request request =
      link_.comm->begin_all_to_all(exec, std::move(send), std::move(receive),
                                   comm::Operation::all_to_all, comm::Purpose::activations);
  Kokkos::deep_copy(exec, Vector<T>(to(own), count), Vector<const T>(from(own), count));
  link_.comm->wait(exec, request);
}

template <class T>
void SequenceGroup<T>::to_heads(const Execution& exec, const kernels::SideBySide<const T>& rows,
                                const Matrix<T>& heads) const {
  kernels::split_columns<T>(exec, rows, size(), parts_);
  const Index each = rows.rows * static_cast<Index>(heads.extent(1));
  exchange(
      exec, each, [&](Index r) { return parts_.data() + r * each; },
      [&](Index r) { return heads.data() + r * each; });
}

template <class T>
void SequenceGroup<T>::to_rows(const Execution& exec, const Matrix<const T>& heads,
                               const kernels::SideBySide<T>& rows) const {
  const Index each = rows.rows * static_cast<Index>(heads.extent(1));
  exchange(
      exec, each, [&](Index r) { return heads.data() + r * each; },
      [&](Index r) { return parts_.data() + r * each; });
  kernels::join_columns<T>(exec, parts_, size(), rows);
}

#define KZERO_INSTANTIATE(T) template class SequenceGroup<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
