#include "comm/node_window.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>

#include "base/bytes.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "grid/agreement.hpp"
#include "grid/nodes.hpp"
#include "runtime/descriptor_transfer.hpp"
#include "runtime/host_name.hpp"

namespace kzero::comm {

namespace {

constexpr std::chrono::seconds patience{60};  // ranks come from the same broadcast

/// Throws the system's reason unless a call succeeded.
void check(bool ok, const char* call) {
  KZERO_REQUIRE(ok, ExitCode::memory, "{}: {}", call, std::generic_category().message(errno));
}

int create_file(Index bytes) {
  const int file = memfd_create("kzero", MFD_CLOEXEC);
  check(file >= 0, "memfd_create");
  check(ftruncate(file, bytes) == 0, "ftruncate");
  return file;
}

std::byte* map(int file, Index bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  check(data != MAP_FAILED, "mmap");
  // Where the system allows huge pages in shared memory, they save TLB misses.
  madvise(data, size, MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

/// Runs a part of the allocation on this rank. Collective over the group.
template <class F>
void together(const grid::Group& group, Index bytes, const std::string& instead, const F& part) {
  grid::collectively(group, [&] {
    try {
      part();
    } catch (const Error& error) {
      fail(ExitCode::memory,
           "the {} ranks of node {} cannot share {} of memory for parameters ({}); {}",
           group.size(), runtime::host_name(), format_bytes(bytes), error.what(), instead);
    }
  });
}

}  // namespace

NodeWindow::NodeWindow(const grid::Group& group, Index bytes, const std::string& instead)
    : group_(group), bytes_(bytes) {
  const grid::Nodes nodes(group, runtime::host_name());
  if (nodes.count() > 1) {
    throw grid::AgreedError(
        ExitCode::usage,
        "grid.node counts ranks of different nodes as one node's, and such ranks cannot share "
        "stage 3's parameters in memory; set it to the ranks of a node, to a divisor of them, or "
        "to 0");
  }
  std::optional<Descriptor> file;
  std::optional<runtime::DescriptorSender> sender;
  together(group, bytes, instead, [&] {
    if (!group.is_root()) return;
    file.emplace(create_file(bytes));
    sender.emplace();
  });
  const std::string name = group.broadcast(sender ? sender->name() : "");
  together(group, bytes, instead, [&] {
    if (sender) {
      sender->send(file->number(), group.size() - 1, patience);
    } else {
      file.emplace(runtime::receive_descriptor(name, patience));
    }
    data_ = map(file->number(), bytes);
  });
}

NodeWindow::~NodeWindow() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
}

void NodeWindow::meet() const {
  // MPI orders its own messages. The fences order the processor's other accesses around them.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  group_.barrier();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace kzero::comm
