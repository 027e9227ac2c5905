#include "engine/batches.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "runtime/pinned_copy.hpp"

namespace kzero::engine {

namespace {

/// Divides a block of bytes into parts with the alignment of arenas.
class Parts {
 public:
  explicit Parts(std::byte* begin) : begin_(begin) {}

  template <class T>
  T* take(Index count) {
    constexpr Index alignment = 64;
    auto* const part = begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + bytes_);
    bytes_ += round_up(count * static_cast<Index>(sizeof(T)), alignment);
    return part;
  }

  Index bytes() const { return bytes_; }

 private:
  std::byte* begin_;
  Index bytes_ = 0;
};

}  // namespace

Batches::Arrays Batches::take(memory::Arenas& arenas, memory::Category category, Index rows,
                              bool documents) {
  const auto arrays_at = [&](std::byte* begin) {
    Parts parts(begin);
    Arrays a;
    a.data = begin;
    a.inputs = parts.take<Token>(rows);
    a.targets = parts.take<Token>(rows);
    a.token = parts.take<Token>(rows);
    a.order = parts.take<Index>(rows);
    a.group_begin = parts.take<Index>(rows + 1);
    if (documents) {
      a.document_begin = parts.take<std::int32_t>(rows);
      a.document_end = parts.take<std::int32_t>(rows);
    }
    a.bytes = parts.bytes();
    return a;
  };
  return arrays_at(arenas.take<std::byte>(category, arrays_at(nullptr).bytes));
}

Batches::Batches(memory::Arenas& arenas, Index batch, Index sequence, Index vocab, bool documents)
    : batch_(batch),
      rows_(batch * sequence),
      device_(take(arenas, memory::Category::io, rows_, documents)) {
  for (Staged& staged : staged_) {
    staged.arrays =
        tensor::on_host ? device_ : take(arenas, memory::Category::offloaded, rows_, documents);
  }
  if (!arenas.measuring()) count_.resize(vocab + 1);
}

void Batches::group_by_token(const Arrays& host) {
  // A stable counting sort: rows with equal tokens keep their order.
  std::fill(count_.begin(), count_.end(), 0);
  for (Index row = 0; row < rows_; ++row) ++count_[host.inputs[row] + 1];
  distinct_ = 0;
  for (std::size_t token = 0; token + 1 < count_.size(); ++token) {
    if (count_[token + 1] > 0) {
      host.token[distinct_] = static_cast<Token>(token);
      host.group_begin[distinct_++] = count_[token];
    }
    count_[token + 1] += count_[token];
  }
  host.group_begin[distinct_] = rows_;
  for (Index row = 0; row < rows_; ++row) host.order[count_[host.inputs[row]]++] = row;
}

model::Batch Batches::load(const tensor::Execution& exec, const data::BatchSource& samples,
                           Index first_sample) {
  Staged& staged = staged_[next_];
  next_ = (next_ + 1) % staged_.size();
  const Arrays& host = staged.arrays;
  staged.copied.synchronize();
  samples.batch(first_sample, batch_, host.inputs, host.targets);
  if (samples.has_documents()) {
    KZERO_EXPECT(host.document_begin != nullptr || rows_ == 0);
    samples.documents(first_sample, batch_, host.inputs, host.document_begin, host.document_end);
  }
  group_by_token(host);
  if (host.data != device_.data) {
    runtime::copy_to_device(exec, host.data, device_.data, host.bytes);
    staged.copied.record(exec);
  }
  const auto rows = static_cast<std::size_t>(rows_);
  model::Batch batch{
      {device_.inputs, rows},
      {device_.targets, rows},
      {{device_.order, rows}, {device_.group_begin, rows + 1}, {device_.token, rows}, distinct_}};
  if (samples.has_documents())
    batch.documents = {{device_.document_begin, rows}, {device_.document_end, rows}};
  return batch;
}

}  // namespace kzero::engine
