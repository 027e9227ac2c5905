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

Batches::Arrays Batches::take(memory::Arenas& arenas, memory::Category category,
                              const TokensShape& shape) {
  const Index rows = shape.batch * shape.sequence, chunks = shape.part.own_chunks();
  const auto arrays_at = [&](std::byte* begin) {
    Parts parts(begin);
    Arrays a;
    a.data = begin;
    a.inputs = parts.take<Token>(rows);
    a.targets = parts.take<Token>(rows);
    a.token = parts.take<Token>(rows / shape.part.size);
    a.order = parts.take<Index>(rows / shape.part.size);
    a.group_begin = parts.take<Index>(rows / shape.part.size + chunks);
    if (shape.documents) {
      a.document_begin = parts.take<std::int32_t>(rows);
      a.document_end = parts.take<std::int32_t>(rows);
    }
    if (shape.weights) a.weights = parts.take<float>(rows);
    if (shape.pairs) a.pairs = parts.take<kernels::PairRows>(rows / data::min_pair_tokens);
    if (shape.top > 0) {
      a.top_tokens = parts.take<Token>(rows * shape.top);
      a.top_ln_p = parts.take<float>(rows * shape.top);
    }
    a.bytes = parts.bytes();
    return a;
  };
  return arrays_at(arenas.take<std::byte>(category, arrays_at(nullptr).bytes));
}

Batches::Batches(memory::Arenas& arenas, const TokensShape& shape)
    : shape_(shape),
      rows_(shape.batch * shape.sequence),
      first_(shape.part.rank * (rows_ / shape.part.size)),
      chunk_(rows_ / shape.part.chunks),
      device_(take(arenas, memory::Category::io, shape)) {
  for (Staged& staged : staged_) {
    staged.arrays = tensor::on_host ? device_ : take(arenas, memory::Category::offloaded, shape);
  }
  if (arenas.measuring()) return;
  count_.resize(shape.vocab + 1);
  if (shape.pairs) pairs_.resize(rows_ / data::min_pair_tokens);
  const auto rows = static_cast<std::size_t>(chunk_);
  for (Index chunk = 0; chunk < shape.part.own_chunks(); ++chunk) {
    const Index at = chunk * chunk_;
    groups_.push_back({{device_.order + at, rows},
                       {device_.group_begin + at + chunk, rows + 1},
                       {device_.token + at, rows}});
  }
}

/// Groups the rows of a chunk, counted from its first. Returns the number of distinct tokens.
Index Batches::group_by_token(const Arrays& host, Index chunk) {
  const Index at = chunk * chunk_;
  const Token* const inputs = host.inputs + first_ + at;
  Index* const begin = host.group_begin + at + chunk;
  Index distinct = 0;
  // A stable counting sort: rows with equal tokens keep their order.
  std::fill(count_.begin(), count_.end(), 0);
  for (Index row = 0; row < chunk_; ++row) ++count_[inputs[row] + 1];
  for (std::size_t token = 0; token + 1 < count_.size(); ++token) {
    if (count_[token + 1] > 0) {
      host.token[at + distinct] = static_cast<Token>(token);
      begin[distinct++] = count_[token];
    }
    count_[token + 1] += count_[token];
  }
  begin[distinct] = chunk_;
  for (Index row = 0; row < chunk_; ++row) host.order[at + count_[inputs[row]]++] = row;
  return distinct;
}

/// Returns the number of pairs.
Index Batches::load_pairs(const Arrays& host, const data::BatchSource& samples,
                          Index first_sample) {
  const Index count = samples.pairs(first_sample, shape_.batch, pairs_.data()).value_or(0);
  const auto narrow = [](Index value) { return static_cast<std::int32_t>(value); };
  for (Index i = 0; i < count; ++i) {
    const data::Pair& pair = pairs_[i];
    host.pairs[i] = {
        narrow(pair.chosen),         narrow(pair.rejected),         narrow(pair.end),
        narrow(pair.chosen_targets), narrow(pair.rejected_targets), pair.chosen_reference,
        pair.rejected_reference};
  }
  return count;
}

/// What the teacher says of this rank's rows.
kernels::TeacherRows Batches::teacher() const {
  const auto own = static_cast<std::size_t>(rows_ / shape_.part.size);
  const auto top = static_cast<std::size_t>(shape_.top);
  const Index at = first_ * shape_.top;
  return {{device_.top_tokens + at, own, top},
          {device_.top_ln_p + at, own, top},
          shape_.teacher_weight};
}

model::Batch Batches::load(const tensor::Execution& exec, const data::BatchSource& samples,
                           Index first_sample) {
  Staged& staged = staged_[next_];
  next_ = (next_ + 1) % staged_.size();
  const Arrays& host = staged.arrays;
  staged.copied.synchronize();
  samples.batch(first_sample, shape_.batch, host.inputs, host.targets);
  if (samples.has_documents()) {
    KZERO_EXPECT(host.document_begin != nullptr || rows_ == 0);
    samples.documents(first_sample, shape_.batch, host.inputs, host.document_begin,
                      host.document_end);
  }
  const bool has_weights = shape_.weights && samples.has_weights();
  if (has_weights) samples.weights(first_sample, shape_.batch, host.weights);
  const Index pairs = shape_.pairs ? load_pairs(host, samples, first_sample) : 0;
  const bool is_taught = shape_.top > 0 && samples.has_teacher();
  if (is_taught)
    samples.teacher(first_sample, shape_.batch, shape_.top, host.top_tokens, host.top_ln_p);
  for (std::size_t chunk = 0; chunk < groups_.size(); ++chunk)
    groups_[chunk].distinct = group_by_token(host, static_cast<Index>(chunk));
  if (host.data != device_.data) {
    runtime::copy_to_device(exec, host.data, device_.data, host.bytes);
    staged.copied.record(exec);
  }
  const auto all = static_cast<std::size_t>(rows_);
  const std::size_t own = all / static_cast<std::size_t>(shape_.part.size);
  model::Batch batch{{device_.inputs + first_, own}, {device_.targets + first_, own}, groups_};
  if (samples.has_documents())
    batch.documents = {{device_.document_begin, all}, {device_.document_end, all}};
  if (has_weights) batch.weights = {device_.weights + first_, own};
  batch.pairs = {device_.pairs, static_cast<std::size_t>(pairs)};
  if (is_taught) batch.teacher = teacher();
  return batch;
}

}  // namespace kzero::engine
