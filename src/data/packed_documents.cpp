#include "data/packed_documents.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace kzero::data {

namespace {

std::vector<Index> every_second(std::span<const Index> starts) {
  std::vector<Index> chosen;
  for (std::size_t i = 0; i < starts.size(); i += 2) chosen.push_back(starts[i]);
  return chosen;
}

/// Replaces each pair by its two documents.
void split_pairs(Packing& packing) {
  std::vector<std::uint32_t> documents;
  documents.reserve(2 * packing.documents.size());
  for (const std::uint32_t pair : packing.documents) {
    documents.push_back(2 * pair);
    documents.push_back(2 * pair + 1);
  }
  packing.documents = std::move(documents);
  for (std::uint32_t& begin : packing.begin) begin *= 2;
}

}  // namespace

PackedDocuments::PackedDocuments(std::shared_ptr<const DocumentFiles> files, Index sequence,
                                 Index first, Index count, deck::DataOrder order,
                                 std::uint64_t seed, std::shared_ptr<const TeacherFile> teacher)
    : files_(std::move(files)),
      sequence_(sequence),
      first_(first),
      count_(count),
      order_(order),
      seed_(seed),
      teacher_(std::move(teacher)) {
  KZERO_EXPECT(count > 0 && first >= 0 && first + count <= files_->documents());
  KZERO_EXPECT(!files_->are_pairs() || (first % 2 == 0 && count % 2 == 0));
  first_row_.push_back(epoch(0).packing.rows());
}

void PackedDocuments::pack(Index number, Epoch& epoch) const {
  auto starts = files_->starts().subspan(static_cast<std::size_t>(first_),
                                         static_cast<std::size_t>(count_ + 1));
  const std::vector<Index> of_pairs =
      files_->are_pairs() ? every_second(starts) : std::vector<Index>();
  if (files_->are_pairs()) starts = of_pairs;
  epoch.packing = order_ == deck::DataOrder::sequential
                      ? pack_in_order(starts, sequence_)
                      : pack_shuffled(starts, sequence_, seed_, static_cast<std::uint64_t>(number));
  if (files_->are_pairs()) split_pairs(epoch.packing);
  for (std::uint32_t& document : epoch.packing.documents)
    document += static_cast<std::uint32_t>(first_);
  epoch.targets.resize(static_cast<std::size_t>(epoch.packing.rows()));
  for (Index row = 0; row < epoch.packing.rows(); ++row) {
    Index targets = 0;
    for (const std::uint32_t document : epoch.packing.row(row))
      targets += files_->targets(document);
    epoch.targets[row] = static_cast<std::uint32_t>(targets);
  }
  epoch.number = number;
}

const PackedDocuments::Epoch& PackedDocuments::epoch(Index number) const {
  Epoch& kept = kept_[number % std::ssize(kept_)];
  if (kept.number != number) pack(number, kept);
  return kept;
}

/// Sequential epochs are all alike. Of shuffled ones, the first row is known once those before it
/// were packed.
PackedDocuments::Place PackedDocuments::place(Index sample) const {
  if (order_ == deck::DataOrder::sequential) return {epoch(0), sample % windows()};
  while (first_row_.back() <= sample) {
    const Index next = std::ssize(first_row_) - 1;
    first_row_.push_back(first_row_.back() + epoch(next).packing.rows());
  }
  const auto after = std::ranges::upper_bound(first_row_, sample);
  const Index number = after - first_row_.begin() - 1;
  return {epoch(number), sample - first_row_[number]};
}

std::span<const std::uint32_t> PackedDocuments::documents_of(Index sample) const {
  const Place at = place(sample);
  return at.epoch.packing.row(at.row);
}

void PackedDocuments::batch(Index first_sample, Index count, Token* inputs, Token* targets) const {
  for (Index i = 0; i < count; ++i, inputs += sequence_, targets += sequence_) {
    Index at = 0;
    for (const std::uint32_t document : documents_of(first_sample + i)) {
      files_->read(document, inputs + at, targets + at);
      at += files_->length(document);
    }
    std::fill(inputs + at, inputs + sequence_, Token{0});
    std::fill(targets + at, targets + sequence_, no_target);
  }
}

void PackedDocuments::documents(Index first_sample, Index count, const Token* /*inputs*/,
                                std::int32_t* begin, std::int32_t* end) const {
  for (Index i = 0; i < count; ++i, begin += sequence_, end += sequence_) {
    std::int32_t at = 0;
    for (const std::uint32_t document : documents_of(first_sample + i)) {
      const auto after = at + static_cast<std::int32_t>(files_->length(document));
      std::fill(begin + at, begin + after, at);
      std::fill(end + at, end + after, after);
      at = after;
    }
    std::iota(begin + at, begin + sequence_, at);
    std::iota(end + at, end + sequence_, at + 1);
  }
}

std::optional<Index> PackedDocuments::targets(Index first_sample, Index count) const {
  Index sum = 0;
  for (Index i = 0; i < count; ++i) {
    const Place at = place(first_sample + i);
    sum += at.epoch.targets[at.row];
  }
  return sum;
}

void PackedDocuments::weights(Index first_sample, Index count, float* weights) const {
  for (Index i = 0; i < count; ++i, weights += sequence_) {
    float* at = weights;
    for (const std::uint32_t document : documents_of(first_sample + i))
      at = std::fill_n(at, files_->length(document), files_->weight(document));
    std::fill(at, weights + sequence_, 1.0F);
  }
}

std::optional<Index> PackedDocuments::pairs(Index first_sample, Index count, Pair* pairs) const {
  if (!files_->are_pairs()) return std::nullopt;
  Index found = 0;
  for (Index i = 0; i < count; ++i) {
    const std::span<const std::uint32_t> documents = documents_of(first_sample + i);
    Index at = i * sequence_;
    for (std::size_t k = 0; k < documents.size() && pairs != nullptr; k += 2) {
      const std::uint32_t chosen = documents[k], rejected = documents[k + 1];
      Pair& pair = pairs[found + static_cast<Index>(k) / 2];
      pair.chosen = at;
      pair.rejected = pair.chosen + files_->length(chosen);
      pair.end = at = pair.rejected + files_->length(rejected);
      pair.chosen_targets = files_->targets(chosen);
      pair.rejected_targets = files_->targets(rejected);
      pair.chosen_reference = files_->reference(chosen);
      pair.rejected_reference = files_->reference(rejected);
    }
    found += std::ssize(documents) / 2;
  }
  return found;
}

void PackedDocuments::teacher(Index first_sample, Index count, Index top, Token* tokens,
                              float* ln_p) const {
  for (Index i = 0; i < count; ++i, tokens += sequence_ * top, ln_p += sequence_ * top) {
    Index at = 0;
    for (const std::uint32_t document : documents_of(first_sample + i)) {
      teacher_->read(files_->starts()[document], files_->length(document), tokens + at * top,
                     ln_p + at * top);
      at += files_->length(document);
    }
    std::fill(tokens + at * top, tokens + sequence_ * top, Token{0});
    std::fill(ln_p + at * top, ln_p + sequence_ * top, 0.0F);
  }
}

Fullness PackedDocuments::fullness() const {
  Fullness found{.documents = count_, .positions = windows() * sequence_};
  found.tokens = files_->starts()[first_ + count_] - files_->starts()[first_];
  found.least_weight = found.largest_weight = files_->weight(first_);
  for (Index document = first_; document < first_ + count_; ++document) {
    found.targets += files_->targets(document);
    found.least_weight = std::min(found.least_weight, files_->weight(document));
    found.largest_weight = std::max(found.largest_weight, files_->weight(document));
  }
  return found;
}

/// The first part names the way of packing: a change of it must change the digest.
std::uint64_t PackedDocuments::digest() const {
  const std::uint64_t way_of_packing = files_->are_pairs() ? 2 : 1;
  const bool shuffled = order_ == deck::DataOrder::shuffled;
  const std::array<std::uint64_t, 6> parts{way_of_packing,
                                           static_cast<std::uint64_t>(sequence_),
                                           static_cast<std::uint64_t>(first_),
                                           static_cast<std::uint64_t>(count_),
                                           shuffled ? 1U : 0U,
                                           shuffled ? seed_ : 0};
  return checksum(std::as_bytes(std::span(parts)));
}

}  // namespace kzero::data
