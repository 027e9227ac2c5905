#include "checkpoint/targets.hpp"

#include <algorithm>

#include "checkpoint/parameter_hash.hpp"

namespace kzero::checkpoint {

namespace {

/// Where an array is not wanted there is no hash; one of another size is read()'s to refuse.
bool has_room(const Piece& piece, Index elements) {
  return std::ranges::all_of(
      piece.states(), [&](const std::span<float> state) { return std::ssize(state) == elements; });
}

}  // namespace

Targets::Targets(std::span<const Piece> wanted, const std::vector<Parameter>& parameters) {
  const Positions positions = positions_of(parameters);
  for (const Piece& piece : wanted) {
    const auto found = positions.find(piece.parameter);
    if (found == positions.end() || !has_room(piece, elements_of(piece.ranges))) continue;
    by_parameter_.emplace(found->second, Target{compact(piece.ranges), &piece});
  }
}

const Piece* Targets::take(const StoredPiece& stored) {
  const auto [begin, end] = by_parameter_.equal_range(stored.parameter);
  for (auto target = begin; target != end; ++target) {
    if (target->second.runs != stored.runs) continue;
    const Piece* piece = target->second.piece;
    by_parameter_.erase(target);
    return piece;
  }
  return nullptr;
}

}  // namespace kzero::checkpoint
