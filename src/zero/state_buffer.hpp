// One of the optimizer's state arrays on a rank: elements of full units or of the rank's shards,
// for the parameters that the array covers.
#pragma once

#include <vector>

#include "param/state_array.hpp"
#include "zero/flat_buffer.hpp"

namespace kzero::zero {

/// A placement and a data rank.
struct StatePlacement {
  Placement placement = Placement::replicated;
  Index rank = 0;
};

/// Returns the largest number of elements of a unit in an array that any rank holds under a
/// placement. Every rank allocates this number, so all need the same memory.
Index max_held(const param::UnitSpec& spec, const param::UnitLayout& layout,
               const param::StateArray& array, Placement placement);

class StateBuffer {
 public:
  /// Represents an array that is stored elsewhere.
  StateBuffer() = default;
  StateBuffer(memory::Arenas& arenas, memory::Category category, const param::Table& table,
              const param::FlatLayout& layout, const param::StateArray& array,
              const StatePlacement& own);

  float* data() const { return data_; }
  Index elements() const { return elements_; }
  bool is_elsewhere() const { return units_.empty(); }

  /// Return the first local element of unit u, and the positions of the others. The positions are
  /// null if the elements are consecutive.
  float* unit(Index u) const { return units_[u]; }
  const std::vector<float*>& units() const { return units_; }
  const param::CompactRange* range(Index u) const {
    return ranges_.empty() ? nullptr : &ranges_[u];
  }

 private:
  std::vector<float*> units_;
  std::vector<param::CompactRange> ranges_;  // empty for an array of all parameters
  Index elements_ = 0;
  float* data_ = nullptr;
};

}  // namespace kzero::zero
