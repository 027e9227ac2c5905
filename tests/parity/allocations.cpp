// No step allocates: every allocation of this program is counted, of Kokkos and of the C library,
// by whom it is asked for.
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <Kokkos_Core.hpp>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "support/training.hpp"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace kzero::tests {
namespace {

constexpr std::size_t least_bytes = 4096;
constexpr int most_recorded = 4096;
constexpr int depth = 12;

struct Request {
  std::size_t bytes;
  int frames;
  void* frame[depth];
};

std::atomic<bool> recording{false};
std::atomic<int> requests{0};
std::atomic<int> kokkos_allocations{0};
Request recorded[most_recorded];
thread_local bool inside = false;

/// Notes who asks. Allocates nothing itself.
void note(std::size_t bytes) {
  if (bytes < least_bytes || inside || !recording) return;
  inside = true;
  const int at = requests++;
  if (at < most_recorded) {
    recorded[at].bytes = bytes;
    recorded[at].frames = backtrace(recorded[at].frame, depth);
  }
  inside = false;
}

Kokkos::Tools::Experimental::EventSet tool;  // what was there before

void note_kokkos(Kokkos::Tools::SpaceHandle space, const char* label, const void* data,
                 std::uint64_t bytes) {
  if (recording) ++kokkos_allocations;
  if (tool.allocate_data) tool.allocate_data(space, label, data, bytes);
}

/// The first shared object on the stack that is neither this program nor the C or C++ library; this
/// program if there is none.
std::string library_of(const Request& request) {
  for (int i = 0; i < request.frames; ++i) {
    Dl_info info{};
    if (dladdr(request.frame[i], &info) == 0 || info.dli_fname == nullptr) continue;
    const std::string name = std::filesystem::path(info.dli_fname).filename().string();
    const bool is_plain = name.starts_with("libc.") || name.starts_with("libstdc++");
    if (!is_plain && name.find("test_parity") == std::string::npos) return name;
  }
  return "kzero";
}

std::map<std::string, int> by_library() {
  std::map<std::string, int> counts;
  for (int i = 0; i < std::min<int>(requests, most_recorded); ++i) {
    ++counts[library_of(recorded[i])];
  }
  return counts;
}

template <class F>
void record(const F& f) {
  void* first[1];
  backtrace(first, 1);  // which loads a library when it is called first
  requests = kokkos_allocations = 0;
  tool = Kokkos::Tools::Experimental::get_callbacks();
  Kokkos::Tools::Experimental::set_allocate_data_callback(&note_kokkos);
  recording = true;
  f();
  recording = false;
  Kokkos::Tools::Experimental::set_allocate_data_callback(tool.allocate_data);
}

/// oneDNN's products of fp32 matrices pack into memory of their own, which they free before they
/// return; there is no way to give them any. MPI keeps its own, too.
bool is_library_of_its_own(const std::string& name, int ranks) {
  if (name.starts_with("libdnnl")) return true;
  for (const char* start : {"libmpi", "libuc", "libfabric", "libpmi"}) {
    if (ranks > 1 && name.starts_with(start)) return true;
  }
  return false;
}

std::size_t heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace
}  // namespace kzero::tests

using kzero::tests::note;

extern "C" {
void* malloc(std::size_t bytes) noexcept {
  note(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* data, std::size_t bytes) noexcept {
  note(bytes);
  return __libc_realloc(data, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** data, std::size_t alignment, std::size_t bytes) noexcept {
  note(bytes);
  *data = __libc_memalign(alignment, bytes);
  return *data ? 0 : ENOMEM;
}
}

namespace kzero::tests {
namespace {

class Allocations : public testing::TestWithParam<Dtype> {};

TEST_P(Allocations, NoneInAStep) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = small_deck(GetParam());
  config.recompute = {.mode = deck::RecomputeMode::block, .offload = deck::Offload::host};
  Training training(config, group);
  training.engine->initialise({});
  training.run(0, 3);
  const std::size_t before = heap_in_use();
  record([&] {
    for (Index s = 3; s <= 6; ++s) training.step(s);
  });
  const std::size_t after = heap_in_use();
  EXPECT_EQ(kokkos_allocations, 0);
  for (const auto& [library, count] : by_library()) {
    EXPECT_TRUE(is_library_of_its_own(library, group.size())) << count << " by " << library;
  }
  if (group.size() == 1) {
    EXPECT_EQ(after, before) << "a step keeps memory";
  }
}

TEST(AllocationCount, SeesWhatIsAllocated) {
  std::vector<char> kept;
  record([&] { kept.resize(least_bytes); });
  EXPECT_EQ(by_library(), (std::map<std::string, int>{{"kzero", 1}}));
  record([] { const Kokkos::View<char*> view("kzero::tests::view", least_bytes); });
  EXPECT_EQ(kokkos_allocations, 1);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Allocations,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
