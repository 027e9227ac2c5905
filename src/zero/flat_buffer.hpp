// A buffer for a rank's elements of every unit: full units or consecutive shards of each.
#pragma once

#include <vector>

#include "memory/arenas.hpp"
#include "zero/stage.hpp"

namespace kzero::zero {

template <class T>
class FlatBuffer {
 public:
  FlatBuffer() = default;
  /// A rank that holds `shards` shards of a unit holds its own and those of its neighbours: a
  /// multiple of `shards` is the first.
  FlatBuffer(memory::Arenas& arenas, memory::Category category, const param::FlatLayout& layout,
             Placement placement, Index shards = 1)
      : layout_(&layout),
        placement_(placement),
        shards_(shards),
        elements_(placement == Placement::replicated ? layout.total()
                                                     : shards * layout.owned_total()),
        data_(arenas.take<T>(category, elements_)) {
    for (const param::UnitLayout& unit : layout.units()) {
      const Index begin = placement == Placement::replicated ? unit.begin : shards * unit.owned;
      units_.push_back(data_ ? data_ + begin : nullptr);
    }
  }

  /// Returns full units in memory that ranks / copies ranks share. Each rank counts its shards.
  static FlatBuffer shared(memory::Arenas& arenas, memory::Category category,
                           const param::FlatLayout& layout, Index copies) {
    FlatBuffer buffer;
    buffer.layout_ = &layout;
    buffer.elements_ = layout.total();
    buffer.data_ =
        arenas.take_shared<T>(category, copies * layout.owned_total(), layout.ranks() / copies);
    for (const param::UnitLayout& unit : layout.units())
      buffer.units_.push_back(buffer.data_ ? buffer.data_ + unit.begin : nullptr);
    return buffer;
  }

  T* data() const { return data_; }
  Index elements() const { return elements_; }

  /// The first local element of unit u.
  T* unit(Index u) const { return units_[u]; }
  const std::vector<T*>& units() const { return units_; }

  /// Returns the first element of the range of unit u that `rank`, this buffer's owner, would hold
  /// under placement `by`. The buffer must hold that range.
  T* share(Index u, Placement by, Index rank) const {
    if (by == Placement::replicated) return unit(u);
    const Index before = placement_ == Placement::replicated ? rank : rank % shards_;
    return unit(u) + before * layout_->unit(u).shard;
  }

 private:
  const param::FlatLayout* layout_ = nullptr;
  Placement placement_ = Placement::replicated;
  Index shards_ = 1;
  Index elements_ = 0;
  T* data_ = nullptr;
  std::vector<T*> units_;
};

}  // namespace kzero::zero
