#include "model/tensor_group.hpp"

#include <algorithm>

#include "comm/gather.hpp"
#include "kernels/reduction.hpp"

namespace kzero::model {

using comm::ConstSpan;
using comm::Purpose;
using comm::Span;

template <class T>
TensorGroup<T>::TensorGroup(memory::Arenas& arenas, const TensorLink& link, Index rows, Index width)
    : link_(link) {
  if (size() == 1) return;
  // At least one row of every rank, at most all rows of each rank.
  const Index max_share = part_begin(rows, size(), 1) * width;
  const Index share = link.bucket / bytes_of(dtype_of<T>) / size();
  buffer_elements_ = std::clamp(share, width, std::max(max_share, width)) * size();
  buffer_ = arenas.take<T>(memory::Category::buckets, buffer_elements_);
}

template <class T>
void TensorGroup<T>::reduce_scatter(const Execution& exec, const Matrix<T>& partial, const T* bias,
                                    const T* addend, T* own) const {
  sum_own_rows(exec, partial, bias, addend, own, comm::Operation::reduce_scatter);
}

template <class T>
void TensorGroup<T>::all_gather(const Execution& exec, const T* own, const Matrix<T>& all,
                                Purpose purpose) const {
  gather(exec, own, all, comm::Operation::all_gather, purpose);
}

template <class T>
void TensorGroup<T>::all_reduce(const Execution& exec, const Matrix<T>& partial, const T* bias,
                                const T* addend, const Matrix<T>& out) const {
  const Index before = first_row(partial.extent(0), rank()) * static_cast<Index>(partial.extent(1));
  T* own = out.data() + before;
  sum_own_rows(exec, partial, bias, addend ? addend + before : nullptr, own,
               comm::Operation::all_reduce);
  gather(exec, own, out, comm::Operation::all_reduce, Purpose::activations);
}

// Sums one chunk of every rank's rows at a time, as large as the buffer allows.
template <class T>
void TensorGroup<T>::sum_own_rows(const Execution& exec, const Matrix<T>& partial, const T* bias,
                                  const T* addend, T* own, comm::Operation operation) const {
  const Index rows = partial.extent(0), width = partial.extent(1);
  const Index mine = first_row(rows, rank()), max_rows = first_row(rows, 1);
  const Index chunk = buffer_elements_ / size() / width;
  for (Index at = 0; at < max_rows; at += chunk) {
    const auto rows_of = [&](Index r) {
      return std::clamp<Index>(part_size(rows, size(), r) - at, 0, chunk);
    };
    const Index count = rows_of(rank());
    std::vector<ConstSpan> send;
    std::vector<Span> receive;
    for (Index r = 0; r < size(); ++r) {
      send.push_back(
          ConstSpan::of(partial.data() + (first_row(rows, r) + at) * width, rows_of(r) * width));
      receive.push_back(Span::of(buffer_ + r * count * width, count * width));
    }
    link_.comm->all_to_all(exec, std::move(send), std::move(receive), operation,
                           Purpose::activations);
    const kernels::RankValues<T> values{buffer_, count * width,
                                        partial.data() + (mine + at) * width,
                                        static_cast<int>(size()), static_cast<int>(rank())};
    const auto n = static_cast<std::size_t>(count), w = static_cast<std::size_t>(width);
    kernels::sum_partial_rows<T>(exec, values, bias, addend ? addend + at * width : nullptr,
                                 Matrix<T>(own + at * width, n, w));
  }
}

template <class T>
void TensorGroup<T>::gather(const Execution& exec, const T* own, const Matrix<T>& all,
                            comm::Operation operation, Purpose purpose) const {
  const Index rows = all.extent(0), width = all.extent(1);
  const auto count = [&](Index r) { return part_size(rows, size(), r) * width; };
  std::vector<Span> receive;
  for (Index r = 0; r < size(); ++r)
    receive.push_back(Span::of(all.data() + first_row(rows, r) * width, count(r)));
  link_.comm->all_gather(exec, ConstSpan::of(own, count(rank())), std::move(receive), purpose,
                         operation);
}

template <class T>
void TensorGroup<T>::sum_of_copies(const Execution& exec, Index copies, const T* partial,
                                   Index elements, tensor::Accumulate accumulate, T* sum) const {
  const Index first = rank() / copies * copies, chunk = buffer_elements_ / size();
  for (Index at = 0; at < elements; at += chunk) {
    const Index count = std::min(chunk, elements - at);
    if (copies > 1) {
      std::vector<ConstSpan> send(static_cast<std::size_t>(size()));
      std::vector<Span> receive(static_cast<std::size_t>(size()));
      for (Index i = 0; i < copies; ++i) {
        const auto r = static_cast<std::size_t>(first + i);
        send[r] = ConstSpan::of(partial + at, count);
        receive[r] = Span::of(buffer_ + i * count, count);
      }
      link_.comm->all_to_all(exec, std::move(send), std::move(receive), comm::Operation::all_reduce,
                             Purpose::activations);
    }
    const kernels::RankValues<T> values{buffer_, count, partial + at, static_cast<int>(copies),
                                        static_cast<int>(rank() - first)};
    T* out = sum + at;
    kernels::sum_partial_rows<T>(exec, values, nullptr,
                                 accumulate == tensor::Accumulate::yes ? out : nullptr,
                                 Matrix<T>(out, static_cast<std::size_t>(count), 1));
  }
}

template <class T>
void TensorGroup<T>::exchange_own(const Execution& exec, float* all, Index count) const {
  link_.comm->wait(exec, comm::begin_gather<float>(exec, *link_.comm, all, count, {0, count},
                                                   all + rank() * count, Purpose::activations));
}

#define KZERO_INSTANTIATE(T) template class TensorGroup<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
