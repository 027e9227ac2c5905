// Checks that no step allocates. Every allocation by Kokkos and by the C library in this program is
// counted by its caller.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <vector>

#include "parity/heap_requests.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

int kokkos_allocations = 0;
Kokkos::Tools::Experimental::EventSet tool;  // the callbacks before recording

/// Kokkos' CUDA back end asks for 0 bytes in each launch of teams without scratch in device memory.
void note_kokkos(Kokkos::Tools::SpaceHandle space, const char* label, const void* data,
                 std::uint64_t bytes) {
  if (bytes > 0) ++kokkos_allocations;
  if (tool.allocate_data) tool.allocate_data(space, label, data, bytes);
}

template <class F>
void record(const F& f) {
  kokkos_allocations = 0;
  tool = Kokkos::Tools::Experimental::get_callbacks();
  Kokkos::Tools::Experimental::set_allocate_data_callback(&note_kokkos);
  begin_recording();
  f();
  end_recording();
  Kokkos::Tools::Experimental::set_allocate_data_callback(tool.allocate_data);
}

/// oneDNN's products of fp32 matrices pack into internal memory, which they free before they
/// return. A caller cannot provide this memory. MPI also uses internal memory.
bool is_library_of_its_own(const std::string& name, int ranks) {
  if (name.starts_with("libdnnl")) return true;
  for (const char* start : {"libmpi", "libuc", "libfabric", "libpmi"}) {
    if (ranks > 1 && name.starts_with(start)) return true;
  }
  return false;
}

class Allocations : public testing::TestWithParam<Dtype> {};

void expect_none_in_a_step(deck::Config config) {
  const grid::Group group = first_ranks(launch_ranks());
  config.recompute = {.mode = deck::RecomputeMode::full, .offload = deck::Offload::host};
  Training training(config, group);
  training.engine->initialise({});
  training.run(0, 3);
  record([&] { training.step(3); });  // allocates what recording itself needs
  record([&] {
    for (Index s = 4; s <= 7; ++s) training.step(s);
  });
  EXPECT_EQ(kokkos_allocations, 0);
  for (const auto& [library, count] : requests_by_library()) {
    EXPECT_TRUE(is_library_of_its_own(library, group.size())) << count << " by " << library;
  }
  if (group.size() == 1) {
    EXPECT_EQ(bytes_kept(), 0) << "a step keeps memory";
  }
}

TEST_P(Allocations, NoneInAStep) { expect_none_in_a_step(small_deck(GetParam())); }

TEST_P(Allocations, NoneInAStepOfLlama) {
  expect_none_in_a_step(as_llama(small_deck(GetParam()), 1));
}

TEST_P(Allocations, NoneInAStepThatIsVerified) {
  deck::Config config = small_deck(GetParam());
  config.run.verify_every = 1;
  expect_none_in_a_step(config);
}

TEST(OptimizerAllocations, NoneInAStepOfAnyKind) {
  for (const auto& [name, kind, meaning] : deck::optimizers) {
    SCOPED_TRACE(name);
    deck::Config config = small_deck();
    config.optimizer.kind = kind;
    set_offload_if_needed(config);
    expect_none_in_a_step(config);
  }
}

TEST_P(Allocations, NoneInAStepOfMuon) {
  deck::Config config = small_deck(GetParam());
  config.optimizer.kind = deck::OptimizerKind::muon;
  for (const Index stage : {0, 3}) {
    config.zero.stage = stage;
    expect_none_in_a_step(config);
  }
}

TEST(AllocationCount, SeesWhatIsAllocated) {
  std::vector<char> kept;
  record([&] { kept.resize(min_bytes); });
  EXPECT_EQ(requests_by_library(), (std::map<std::string, int>{{"kzero", 1}}));
  record([] { const Kokkos::View<char*> view("kzero::tests::view", min_bytes); });
  EXPECT_EQ(kokkos_allocations, 1);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Allocations,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
