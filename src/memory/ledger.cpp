#include "memory/ledger.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kzero::memory {

void Ledger::add(Category category, Index bytes) {
  const std::size_t at = position(category);
  now_[at] += bytes;
  peak_[at] = std::max(peak_[at], now_[at]);
}

void Ledger::remove(Category category, Index bytes) {
  KZERO_EXPECT(now_[position(category)] >= bytes);
  now_[position(category)] -= bytes;
}

}  // namespace kzero::memory
