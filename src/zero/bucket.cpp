#include "zero/bucket.hpp"

#include <algorithm>
#include <vector>

#include "kernels/reduction.hpp"

namespace kzero::zero {

using comm::ConstSpan;
using comm::Span;

Bucket::Bucket(memory::Arenas& arenas, Index bytes, Dtype dtype, const param::FlatLayout& layout) {
  const Index ranks = layout.ranks();
  if (ranks == 1) return;
  Index largest = 1;
  for (const param::UnitLayout& unit : layout.units()) largest = std::max(largest, unit.piece);
  slice_ = std::clamp<Index>(bytes / bytes_of(dtype) / ranks, 1, largest);
  data_ = arenas.take<std::byte>(memory::Category::buckets, slice_ * ranks * bytes_of(dtype));
}

template <class T>
void Bucket::all_reduce(const tensor::Execution& exec, comm::Communicator& comm,
                        const param::UnitLayout& layout, T* unit) const {
  const int ranks = comm.size(), me = comm.rank();
  if (ranks == 1) return;
  exec.fence("kzero::zero::gradients_ready");
  std::vector<ConstSpan> send(ranks);
  std::vector<Span> receive(ranks);
  for (Index at = 0; at < layout.piece; at += slice_) {
    const Index count = std::min(slice_, layout.piece - at);
    for (int r = 0; r < ranks; ++r) {
      send[r] = ConstSpan::of(unit + r * layout.piece + at, count);
      receive[r] = Span::of(static_cast<T*>(data_) + r * count, count);
    }
    comm.all_to_all(send, receive, comm::Operation::reduce_scatter, comm::Purpose::gradients);
    T* own = unit + me * layout.piece + at;
    kernels::ordered_sum<T>(exec, static_cast<const T*>(data_), count, ranks, me,
                            tensor::Vector<T>(own, static_cast<std::size_t>(count)));
    exec.fence("kzero::zero::bucket_summed");
    for (int r = 0; r < ranks; ++r) receive[r] = Span::of(unit + r * layout.piece + at, count);
    comm.all_gather(ConstSpan::of(static_cast<const T*>(own), count), receive,
                    comm::Purpose::gradients);
  }
}

template void Bucket::all_reduce<float>(const tensor::Execution&, comm::Communicator&,
                                        const param::UnitLayout&, float*) const;
template void Bucket::all_reduce<bf16>(const tensor::Execution&, comm::Communicator&,
                                       const param::UnitLayout&, bf16*) const;
template void Bucket::all_reduce<fp16>(const tensor::Execution&, comm::Communicator&,
                                       const param::UnitLayout&, fp16*) const;

}  // namespace kzero::zero
