// Memory that the ranks of a node share. It is an unnamed file in memory (memfd_create): not
// limited by the size of /dev/shm, which is 64 MB in many containers, and gone with its last
// process, even if that is killed. MPI_Win_allocate_shared promises neither.
#pragma once

#include <string>

#include "grid/group.hpp"
#include "memory/shared_memory.hpp"

namespace kzero::comm {

class NodeWindow : public memory::SharedMemory {
 public:
  /// Allocates `bytes` that all ranks of `group` share. Pages are placed where they are first
  /// written. Throws AgreedError(memory) if the system refuses, with advice what to do `instead`,
  /// and AgreedError(usage) if the ranks are on several nodes. `group` must outlive the object.
  /// Collective over it.
  NodeWindow(const grid::Group& group, Index bytes, const std::string& instead);
  /// Not collective: other ranks keep the memory.
  ~NodeWindow() override;
  NodeWindow(const NodeWindow&) = delete;
  NodeWindow& operator=(const NodeWindow&) = delete;

  std::byte* data() const override { return data_; }
  void meet() const override;

 private:
  const grid::Group& group_;
  Index bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace kzero::comm
