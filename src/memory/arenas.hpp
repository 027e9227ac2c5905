// One contiguous slab per category (the paper's M_D, section 6.3), sized before the first step. The
// code that takes ranges runs twice: on measuring arenas, which only add up sizes, and on allocated
// arenas, which return memory. The planned bytes therefore equal the bytes of the run by
// construction. Memory that processes of a node share is not part of a slab: each of them counts
// its share.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "base/error.hpp"
#include "base/types.hpp"
#include "memory/ledger.hpp"
#include "memory/shared_memory.hpp"

namespace kzero::memory {

class Arenas {
 public:
  /// Measuring arenas without memory: take() returns null and only counts.
  Arenas() = default;

  /// Allocates the memory that `measured` counted and enters it in `ledger`, which must outlive the
  /// arenas. Throws Error(memory) naming the category that does not fit. `shared` provides
  /// measured.shared_bytes() bytes and must outlive the arenas, too; null if that is 0.
  Arenas(const Arenas& measured, Ledger& ledger, const SharedMemory* shared = nullptr);

  Arenas(Arenas&&) = default;
  Arenas& operator=(Arenas&&) = default;

  bool measuring() const { return ledger_ == nullptr; }

  /// Returns a range of `count` elements, aligned to 64 bytes; null while measuring. Throws
  /// Error(memory) if a category would exceed 256 PiB.
  template <class T>
  T* take(Category category, Index count) {
    return static_cast<T*>(take_bytes(category, count * static_cast<Index>(sizeof(T))));
  }

  /// Returns the range of `ranks * count` elements that `ranks` ranks share, the same memory on
  /// each of them; null while measuring. This rank counts `count` elements. Throws as take() does,
  /// also if the range of all ranks exceeds 256 PiB.
  template <class T>
  T* take_shared(Category category, Index count, Index ranks) {
    return static_cast<T*>(
        take_shared_bytes(category, count * static_cast<Index>(sizeof(T)), ranks));
  }

  /// The bytes of all ranges that are shared, and the memory they are in; null without such ranges
  /// and while measuring.
  Index shared_bytes() const { return shared_bytes_; }
  const SharedMemory* shared() const { return shared_; }

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

  /// The bytes taken so far, by category, with this rank's shares of shared ranges.
  const Bytes& bytes() const { return taken_; }

 private:
  struct Free {
    Ledger* ledger;
    Category category;
    Index bytes;
    bool is_shared;  // and freed by its owner
    void operator()(std::byte* data) const;
  };
  using Slab = std::unique_ptr<std::byte, Free>;

  Index count(Category category, Index bytes);
  void require_planned(Category category, Index used, Index planned) const;
  void* take_bytes(Category category, Index bytes);
  void* take_shared_bytes(Category category, Index bytes, Index ranks);

  Ledger* ledger_ = nullptr;
  const SharedMemory* shared_ = nullptr;
  Bytes taken_{};
  Bytes shares_{};                       // of shared ranges, included in taken_
  Bytes capacity_{}, share_capacity_{};  // of slabs, of shared ranges
  Index shared_bytes_ = 0;               // of all ranks
  std::array<Slab, category_count> slabs_, share_entries_;
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
