#include "data/packing.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "data/permutation.hpp"

namespace kzero::data {

namespace {

Index length_of(std::span<const Index> starts, Index document) {
  return starts[document + 1] - starts[document];
}

/// Rows that may get more documents, in the order in which they began.
class OpenRows {
 public:
  explicit OpenRows(Index sequence) : sequence_(sequence) { rows_.reserve(open_rows); }

  /// Returns the row of a document.
  std::uint32_t place(Index length) {
    Row* best = nullptr;
    for (Row& row : rows_) {
      if (row.room >= length && (best == nullptr || row.room < best->room)) best = &row;
    }
    if (best != nullptr) {
      best->room -= length;
      return best->number;
    }
    if (rows_.size() == open_rows) rows_.erase(std::ranges::min_element(rows_, {}, &Row::room));
    rows_.push_back({count_, sequence_ - length});
    return count_++;
  }

  std::uint32_t count() const { return count_; }

 private:
  struct Row {
    std::uint32_t number;
    Index room;  // tokens
  };

  Index sequence_;
  std::uint32_t count_ = 0;
  std::vector<Row> rows_;
};

}  // namespace

Packing pack_in_order(std::span<const Index> starts, Index sequence) {
  const Index count = std::ssize(starts) - 1;
  Packing packing;
  packing.documents.resize(static_cast<std::size_t>(count));
  std::iota(packing.documents.begin(), packing.documents.end(), 0U);
  Index row_start = starts.front();
  for (Index document = 0; document < count; ++document) {
    if (starts[document + 1] - row_start <= sequence) continue;
    packing.begin.push_back(static_cast<std::uint32_t>(document));
    row_start = starts[document];
  }
  packing.begin.push_back(static_cast<std::uint32_t>(count));
  return packing;
}

Packing pack_shuffled(std::span<const Index> starts, Index sequence, std::uint64_t seed,
                      std::uint64_t epoch) {
  const Index count = std::ssize(starts) - 1;
  const Permutation permutation(count, seed, epoch);
  std::vector<std::uint32_t> drawn(static_cast<std::size_t>(count)), row_of(drawn.size());
  OpenRows open(sequence);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    drawn[i] = static_cast<std::uint32_t>(permutation(static_cast<Index>(i)));
    row_of[i] = open.place(length_of(starts, drawn[i]));
  }
  // A stable counting sort by row: documents of a row stay in the order in which they were drawn.
  Packing packing;
  packing.begin.assign(open.count() + std::size_t{1}, 0);
  for (const std::uint32_t row : row_of) ++packing.begin[row + 1];
  std::partial_sum(packing.begin.begin(), packing.begin.end(), packing.begin.begin());
  packing.documents.resize(drawn.size());
  std::vector<std::uint32_t> next(packing.begin.begin(), packing.begin.end() - 1);
  for (std::size_t i = 0; i < drawn.size(); ++i) packing.documents[next[row_of[i]]++] = drawn[i];
  return packing;
}

}  // namespace kzero::data
