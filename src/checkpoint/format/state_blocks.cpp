#include "checkpoint/format/state_blocks.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kzero::checkpoint {

Index block_elements(Staging* staging, std::size_t arrays, Index max_elements) {
  if (staging == nullptr) return max_elements;
  const auto room = static_cast<Index>(staging->slot(0).size() / std::max<std::size_t>(arrays, 1));
  KZERO_REQUIRE(room > 0, ExitCode::other,
                "internal error: a staging without room for {} state arrays", arrays);
  return std::min(max_elements, room);
}

Blocks::Blocks(Staging* staging, std::span<const StateValues> arrays, Index max_elements)
    : staging_(staging),
      arrays_(arrays),
      step_(block_elements(staging, arrays.size(), max_elements)) {
  KZERO_EXPECT(arrays.size() <= param::max_state_arrays);
  for (const StateValues& array : arrays_)
    elements_ = std::max(elements_, static_cast<Index>(array.values.size()));
}

std::size_t Blocks::slot_of(Index begin) const {
  return static_cast<std::size_t>(begin / step_) % Staging::slots;
}

/// The block from `begin` on: in place, or in its slot, in which each array has a part.
Block Blocks::at(Index begin) const {
  Block block{.begin = begin, .count = std::min(step_, elements_ - begin)};
  const auto count = static_cast<std::size_t>(block.count);
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    const std::span<float> values = arrays_[a].values;
    if (values.empty()) continue;
    block.arrays[a] =
        staging_ == nullptr
            ? values.subspan(static_cast<std::size_t>(begin), count)
            : staging_->slot(slot_of(begin)).subspan(a * static_cast<std::size_t>(step_), count);
  }
  return block;
}

BlockReader::BlockReader(Staging* staging, std::span<const StateValues> arrays, Index max_elements)
    : Blocks(staging, arrays, max_elements) {
  bring(0);
}

void BlockReader::bring(Index begin) {
  if (staging_ == nullptr || begin >= elements_) return;
  const Block block = at(begin);
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    if (!block.arrays[a].empty())
      staging_->bring(slot_of(begin), arrays_[a].values.data() + begin, block.arrays[a]);
  }
}

std::optional<Block> BlockReader::next() {
  if (next_ >= elements_) return std::nullopt;
  const Block block = at(next_);
  bring(next_ + block.count);  // to the slot whose block the caller no longer uses
  if (staging_ != nullptr) staging_->wait(slot_of(next_));
  next_ += block.count;
  return block;
}

BlockWriter::BlockWriter(Staging* staging, std::span<const StateValues> arrays, Index max_elements)
    : Blocks(staging, arrays, max_elements) {}

void BlockWriter::send(Index begin) {
  const Block block = at(begin);
  for (std::size_t a = 0; a < arrays_.size(); ++a) {
    if (!block.arrays[a].empty())
      staging_->send(slot_of(begin), block.arrays[a], arrays_[a].values.data() + begin);
  }
}

std::optional<Block> BlockWriter::next() {
  if (staging_ != nullptr && next_ > 0) send((next_ - 1) / step_ * step_);
  if (next_ >= elements_) {
    for (std::size_t number = 0; staging_ != nullptr && number < Staging::slots; ++number)
      staging_->wait(number);
    return std::nullopt;
  }
  const Block block = at(next_);
  if (staging_ != nullptr) staging_->wait(slot_of(next_));
  next_ += block.count;
  return block;
}

void clear(Staging* staging, const StateValues& array) {
  for (BlockWriter blocks(staging, std::span(&array, 1)); const auto block = blocks.next();)
    std::ranges::fill(block->arrays.front(), 0.0F);
}

}  // namespace kzero::checkpoint
