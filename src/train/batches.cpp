#include "train/batches.hpp"

#include <algorithm>

namespace kzero::train {

namespace {

template <class T>
void upload(const tensor::Execution& exec, const std::vector<T>& from, T* to) {
  const Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(from.data(),
                                                                                from.size());
  Kokkos::deep_copy(exec, tensor::Vector<T>(to, from.size()), host);
}

}  // namespace

Batches::Batches(memory::Arenas& arenas, Index batch, Index sequence, Index vocab)
    : batch_(batch), rows_(batch * sequence) {
  const auto take = [&]<class T>(T, Index count) {
    return arenas.take<T>(memory::Category::io, count);
  };
  inputs_ = take(Token{}, rows_);
  targets_ = take(Token{}, rows_);
  token_ = take(Token{}, rows_);
  order_ = take(Index{}, rows_);
  begin_ = take(Index{}, rows_ + 1);
  if (arenas.measuring()) return;
  host_inputs_.resize(rows_);
  host_targets_.resize(rows_);
  host_token_.resize(rows_);
  host_order_.resize(rows_);
  host_begin_.resize(rows_ + 1);
  count_.resize(vocab + 1);
}

void Batches::group_by_token() {
  // A counting sort, stable: rows of equal tokens keep their order.
  std::fill(count_.begin(), count_.end(), 0);
  for (const Token token : host_inputs_) ++count_[token + 1];
  distinct_ = 0;
  for (std::size_t token = 0; token + 1 < count_.size(); ++token) {
    if (count_[token + 1] > 0) {
      host_token_[distinct_] = static_cast<Token>(token);
      host_begin_[distinct_++] = count_[token];
    }
    count_[token + 1] += count_[token];
  }
  host_begin_[distinct_] = rows_;
  for (Index row = 0; row < rows_; ++row) host_order_[count_[host_inputs_[row]]++] = row;
}

model::Batch Batches::load(const tensor::Execution& exec, const data::BatchSource& samples,
                           Index first_sample) {
  samples.batch(first_sample, batch_, host_inputs_.data(), host_targets_.data());
  group_by_token();
  upload(exec, host_inputs_, inputs_);
  upload(exec, host_targets_, targets_);
  upload(exec, host_token_, token_);
  upload(exec, host_order_, order_);
  upload(exec, host_begin_, begin_);
  const auto rows = static_cast<std::size_t>(rows_);
  return {{inputs_, rows},
          {targets_, rows},
          {{order_, rows}, {begin_, rows + 1}, {token_, rows}, distinct_}};
}

}  // namespace kzero::train
