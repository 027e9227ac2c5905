// What a rank wants from a checkpoint, offered to the verification of its files: a stored piece
// that is wanted as it is goes to its place while its checksum is taken, and is read once.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/piece.hpp"

namespace kzero::checkpoint {

class Targets {
 public:
  Targets() = default;
  /// `wanted` must outlive the object.
  Targets(std::span<const Piece> wanted, const std::vector<Parameter>& parameters);

  /// The wanted piece of the stored one's elements in their order, for the caller to fill; none
  /// where it has to be put together from several, or has no room for all.
  const Piece* take(const StoredPiece& stored);

  /// All that were given out.
  const std::vector<Piece>& taken() const { return taken_; }

 private:
  struct Target {
    std::vector<Run> runs;
    const Piece* piece = nullptr;
  };

  std::unordered_multimap<Index, Target> by_parameter_;
  std::vector<Piece> taken_;
};

}  // namespace kzero::checkpoint
