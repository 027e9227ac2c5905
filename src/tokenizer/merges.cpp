#include "tokenizer/merges.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

namespace kzero::tokenizer {

namespace {

constexpr std::uint64_t no_pair = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15;  // Fibonacci hashing: Knuth, TAOCP 6.4

constexpr std::uint64_t pair_of(Token left, Token right) {
  return static_cast<std::uint64_t>(left) << 32U | static_cast<std::uint32_t>(right);
}

}  // namespace

Merges::Merges(std::span<const Merge> merges) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 2));
  shift_ = 64 - std::countr_zero(size);
  slots_.assign(size, {no_pair, 0, 0});
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::uint64_t pair = pair_of(merges[rank].left, merges[rank].right);
    std::size_t at = pair * golden_ratio >> shift_;
    while (slots_[at].pair != no_pair && slots_[at].pair != pair) at = (at + 1) & (size - 1);
    slots_[at] = {pair, static_cast<std::uint32_t>(rank), merges[rank].merged};
  }
}

const Merges::Slot* Merges::find(Token left, Token right) const {
  const std::uint64_t pair = pair_of(left, right);
  std::size_t at = pair * golden_ratio >> shift_;
  while (slots_[at].pair != pair) {
    if (slots_[at].pair == no_pair) return nullptr;
    at = (at + 1) & (slots_.size() - 1);
  }
  return &slots_[at];
}

/// Adds the symbol at a position and its right neighbour as a candidate, if they can be merged.
void Merges::consider(Scratch& scratch, std::int32_t position) const {
  const Scratch::Symbol& left = scratch.symbols[position];
  if (left.next < 0) return;
  const Token right = scratch.symbols[left.next].token;
  const Slot* slot = find(left.token, right);
  if (slot == nullptr) return;
  const std::uint64_t rank = slot->rank;
  scratch.heap.push_back({rank << 32U | static_cast<std::uint32_t>(position), slot->merged});
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
}

void Merges::apply(std::span<const Token> word, std::vector<Token>& to, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  scratch.heap.clear();
  const auto length = static_cast<std::int32_t>(word.size());
  for (std::int32_t i = 0; i < length; ++i) {
    symbols.push_back({word[i], i - 1, i + 1 < length ? i + 1 : -1, false});
  }
  for (std::int32_t i = 0; i < length; ++i) consider(scratch, i);
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
    const Scratch::Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    const auto position = static_cast<std::int32_t>(best.order & 0xFFFFFFFFU);
    auto& left = symbols[position];
    if (left.is_gone || left.next < 0) continue;
    auto& right = symbols[left.next];
    // The neighbours may have changed since then. Like the library, this compares the merged token,
    // not the rank.
    const Slot* slot = find(left.token, right.token);
    if (slot == nullptr || slot->merged != best.merged) continue;
    left.token = best.merged;
    left.next = right.next;
    right.is_gone = true;
    if (left.next >= 0) symbols[left.next].previous = position;
    if (left.previous >= 0) consider(scratch, left.previous);
    consider(scratch, position);
  }
  for (std::int32_t i = length == 0 ? -1 : 0; i >= 0; i = symbols[i].next) {
    to.push_back(symbols[i].token);
  }
}

}  // namespace kzero::tokenizer
