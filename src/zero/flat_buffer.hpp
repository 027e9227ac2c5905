// A buffer of all units of a model, and where each begins: what the parameters and gradients of a
// stage that replicates them are.
#pragma once

#include <vector>

#include "memory/arenas.hpp"
#include "param/flat_layout.hpp"

namespace kzero::zero {

template <class T>
class FlatBuffer {
 public:
  FlatBuffer(memory::Arenas& arenas, memory::Category category, const param::FlatLayout& layout)
      : data_(arenas.take<T>(category, layout.total())), elements_(layout.total()) {
    for (const param::UnitLayout& unit : layout.units())
      units_.push_back(data_ ? data_ + unit.begin : nullptr);
  }

  T* data() const { return data_; }
  Index elements() const { return elements_; }
  T* unit(Index u) const { return units_[static_cast<std::size_t>(u)]; }
  const std::vector<T*>& units() const { return units_; }

 private:
  T* data_;
  Index elements_;
  std::vector<T*> units_;
};

}  // namespace kzero::zero
