// The flat layout of parameters: every unit is one contiguous range of its parameters, padded to a
// multiple of the data-parallel ranks and split into equal shards, one per rank, with the same
// ownership in every ZeRO stage. A unit has the local shapes of one tensor-parallel rank. The
// layout is pure integer arithmetic; padding belongs to a run and never reaches a file.
#pragma once

#include <vector>

#include "param/spec.hpp"

namespace kzero::param {

struct UnitLayout {
  Index begin = 0;     // of the unit in a buffer of all units
  Index elements = 0;  // without padding
  Index padded = 0;    // a multiple of ranks
  Index shard = 0;     // padded / ranks: what a rank owns; rank r owns [r * shard, (r + 1) * shard)
  Index owned = 0;     // offset of a rank's shard in a buffer of its shards
  std::vector<Index> offsets;  // of each parameter in the unit
};

/// Alignment of units in elements: 64 bytes in 16 bits.
inline constexpr Index unit_alignment = 32;

class FlatLayout {
 public:
  FlatLayout(const Table& table, Index ranks);

  Index ranks() const { return ranks_; }
  const std::vector<UnitLayout>& units() const { return units_; }
  const UnitLayout& unit(Index u) const { return units_[static_cast<std::size_t>(u)]; }

  /// Elements of a buffer of all units, including padding and alignment between units.
  Index total() const { return total_; }
  /// Elements of a buffer of one rank's shards of all units, including alignment between them.
  Index owned_total() const { return owned_total_; }
  /// Elements that take part in collectives: the sum of padded units.
  Index padded() const { return padded_; }

 private:
  Index ranks_;
  Index total_ = 0;
  Index owned_total_ = 0;
  Index padded_ = 0;
  std::vector<UnitLayout> units_;
};

/// The intersection of one parameter with a range of its unit.
struct Part {
  Index param = 0;     // position in the unit
  Index in_param = 0;  // first element within the parameter's local shape
  Index in_unit = 0;   // first element within the unit
  Index count = 0;
};

/// Returns the parts of a unit's parameters that lie in [begin, end) of the unit; padding is in no
/// part.
std::vector<Part> parts(const UnitSpec& spec, const UnitLayout& layout, Index begin, Index end);

}  // namespace kzero::param
