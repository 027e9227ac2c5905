// Tracks the current and peak bytes of slabs by category. The ledger itself allocates nothing.
#pragma once

#include <array>

#include "base/types.hpp"
#include "memory/category.hpp"

namespace kzero::memory {

/// Bytes by category.
using Bytes = std::array<Index, category_count>;

class Ledger {
 public:
  void add(Category category, Index bytes);
  void remove(Category category, Index bytes);

  Index now(Category category) const { return now_[position(category)]; }
  Index peak(Category category) const { return peak_[position(category)]; }
  const Bytes& peaks() const { return peak_; }

 private:
  Bytes now_{};
  Bytes peak_{};
};

}  // namespace kzero::memory
