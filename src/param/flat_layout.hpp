// The flat layout of parameters. Every unit is one contiguous range of its parameters, padded and
// split into equal shards, one per rank. Ownership is the same in every ZeRO stage. A unit has the
// local shapes of one tensor-parallel rank. The layout is pure integer arithmetic. Padding belongs
// to a run and never reaches a file.
#pragma once

#include <vector>

#include "param/spec.hpp"
#include "param/state_array.hpp"

namespace kzero::param {

struct UnitLayout {
  Index begin = 0;     // of the unit in a buffer of all units
  Index elements = 0;  // without padding
  Index padded = 0;    // ranks * shard
  /// Elements that each rank owns, a multiple of shard_alignment. Rank r's begin at r * shard.
  Index shard = 0;
  Index owned = 0;             // offset of a rank's shard in a buffer of its shards
  std::vector<Index> offsets;  // of each parameter in the unit
};

/// Units, and the shards within them, begin at multiples of this many elements on any number of
/// ranks. Addresses are therefore aligned to at least 128 bytes, and sums over blocks of a unit do
/// not depend on the number of ranks.
inline constexpr Index shard_alignment = 64;

class FlatLayout {
 public:
  FlatLayout(const Table& table, Index ranks);

  Index ranks() const { return ranks_; }
  const std::vector<UnitLayout>& units() const { return units_; }
  const UnitLayout& unit(Index u) const { return units_[u]; }

  /// Elements of a buffer of all units, including padding; collectives transfer padding too.
  Index total() const { return total_; }
  /// Elements of a buffer of one rank's shards of all units.
  Index owned_total() const { return owned_total_; }

 private:
  Index ranks_;
  Index total_ = 0;
  Index owned_total_ = 0;
  std::vector<UnitLayout> units_;
};

/// The intersection of one parameter with a range of its unit.
struct Part {
  Index param = 0;     // position in the unit
  Index in_param = 0;  // first element within the parameter's local shape
  Index in_unit = 0;   // first element within the unit
  Index count = 0;
};

/// Returns the parts of a unit's parameters within [begin, end) of the unit. Padding belongs to no
/// part.
std::vector<Part> parts(const UnitSpec& spec, const UnitLayout& layout, Index begin, Index end);

/// Maps the elements of [begin, end) of a unit to an array that covers only some parameters. The
/// covered elements are stored one after another, without gaps for the others.
class CompactRange {
 public:
  CompactRange(const UnitSpec& spec, const UnitLayout& layout, const StateArray& array, Index begin,
               Index end);

  Index elements() const { return elements_; }

  /// The place of element begin + n; -1 if the array does not cover its parameter.
  Index position(Index n) const;

 private:
  struct Run {
    Index begin, count, at;
  };
  std::vector<Run> runs_;  // ascending
  Index elements_ = 0;
};

}  // namespace kzero::param
