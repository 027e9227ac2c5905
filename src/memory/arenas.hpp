// One contiguous slab per category (the paper's M_D, section 6.3), sized before the first step. The
// code that takes ranges runs twice: on measuring arenas, which only add up sizes, and on allocated
// arenas, which return memory. The planned bytes therefore equal the bytes of the run by
// construction.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "base/error.hpp"
#include "base/types.hpp"
#include "memory/ledger.hpp"

namespace kzero::memory {

class Arenas {
 public:
  /// Measuring arenas without memory: take() returns null and only counts.
  Arenas() = default;

  /// Allocates the memory that `measured` counted and enters it in `ledger`, which must outlive the
  /// arenas. Throws Error(memory) naming the category that does not fit.
  Arenas(const Arenas& measured, Ledger& ledger);

  Arenas(Arenas&&) = default;
  Arenas& operator=(Arenas&&) = default;

  bool measuring() const { return ledger_ == nullptr; }

  /// Returns a range of `count` elements, aligned to 64 bytes; null while measuring. Throws
  /// Error(memory) if a category would exceed 256 PiB.
  template <class T>
  T* take(Category category, Index count) {
    return static_cast<T*>(take_bytes(category, count * static_cast<Index>(sizeof(T))));
  }

  /// Calls `layouts` one after the other; each takes ranges of a category from the same starting
  /// point. Use it for ranges that are needed at different times. Later ranges begin after the
  /// longest layout.
  template <class... Layouts>
  void share(Category category, const Layouts&... layouts) {
    Index& taken = taken_[position(category)];
    const Index begin = taken;
    Index end = begin;
    ((taken = begin, layouts(), end = std::max(end, taken)), ...);
    taken = end;
  }

  /// The bytes taken so far, by category.
  const Bytes& bytes() const { return taken_; }

 private:
  struct Free {
    Ledger* ledger;
    Category category;
    Index bytes;
    void operator()(std::byte* data) const;
  };

  void* take_bytes(Category category, Index bytes);

  Ledger* ledger_ = nullptr;
  Bytes taken_{};
  Bytes capacity_{};
  std::array<std::unique_ptr<std::byte, Free>, category_count> slabs_;
};

/// Runs layout code, which takes ranges from the arenas that it is given, without memory. Returns
/// the measuring arenas.
template <class Layout>
Arenas measured(const Layout& layout) {
  Arenas arenas;
  layout(arenas);
  return arenas;
}

}  // namespace kzero::memory
