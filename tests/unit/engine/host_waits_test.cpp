// How often a step makes the host wait for the device. The test counts two events that Kokkos
// reports to tools: fences, including those of blocking copies, and copies from memory that is not
// pinned, for which a device's driver also waits.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "support/device_memory.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

namespace tools = Kokkos::Tools::Experimental;
using Counts = std::map<std::string, Index>;

tools::EventSet tool;  // the callbacks before recording
Counts counts;
std::map<const std::byte*, std::uint64_t> allocations;  // of Kokkos: device and pinned memory

/// Fences that a device build does not have: before a tool is called, where hosts have no events,
/// within the host's own copies and products, around MPI messages, and where ranks share memory.
bool is_of_hosts(const std::string& label) {
  for (const char* start :
       {"Kokkos::Tools::", "Kokkos::Impl::host", "kzero::runtime::event_recorded",
        "kzero::tensor::operands_ready", "kzero::tensor::copied",
        "kzero::comm::", "kzero::zero::parameters_written"}) {
    if (label.starts_with(start)) return true;
  }
  return false;
}

void note_fence(const char* label, std::uint32_t device, std::uint64_t* id) {
  if (!is_of_hosts(label)) ++counts[label];
  if (tool.begin_fence) tool.begin_fence(label, device, id);
}

void note_allocation(Kokkos::Tools::SpaceHandle space, const char* label, const void* data,
                     std::uint64_t bytes) {
  constexpr std::uint64_t header = 128;
  allocations[static_cast<const std::byte*>(data)] = bytes + header;
  if (tool.allocate_data) tool.allocate_data(space, label, data, bytes);
}

void note_release(Kokkos::Tools::SpaceHandle space, const char* label, const void* data,
                  std::uint64_t bytes) {
  allocations.erase(static_cast<const std::byte*>(data));
  if (tool.deallocate_data) tool.deallocate_data(space, label, data, bytes);
}

bool is_of_kokkos(const void* data) {
  const auto* const at = static_cast<const std::byte*>(data);
  auto found = allocations.upper_bound(at);
  if (found == allocations.begin()) return false;
  --found;
  return at < found->first + found->second;
}

void note_copy(Kokkos::Tools::SpaceHandle to, const char* to_name, const void* to_data,
               Kokkos::Tools::SpaceHandle from, const char* from_name, const void* from_data,
               std::uint64_t bytes) {
  const bool fills = std::string_view(from_name) == "(none)";  // fills all elements with one value
  if (!is_of_kokkos(to_data) || (!fills && !is_of_kokkos(from_data))) ++counts["copy, not pinned"];
  if (tool.begin_deep_copy)
    tool.begin_deep_copy(to, to_name, to_data, from, from_name, from_data, bytes);
}

class HostWaits : public testing::Test {
 protected:
  HostWaits() {
    tool = tools::get_callbacks();
    tools::set_allocate_data_callback(&note_allocation);
    tools::set_deallocate_data_callback(&note_release);
  }
  ~HostWaits() override {
    tools::set_allocate_data_callback(tool.allocate_data);
    tools::set_deallocate_data_callback(tool.deallocate_data);
    allocations.clear();
  }

  template <class F>
  static Counts count(const F& f) {
    counts.clear();
    tools::set_begin_fence_callback(&note_fence);
    tools::set_begin_deep_copy_callback(&note_copy);
    f();
    tools::set_begin_fence_callback(tool.begin_fence);
    tools::set_begin_deep_copy_callback(tool.begin_deep_copy);
    return counts;
  }

  /// The waits of a step after the first.
  static Counts of_a_step(const deck::Config& config) {
    const grid::Group group = first_ranks(launch_ranks());
    Training training(config, group);
    training.engine->initialise({});
    training.run(0, 2);
    return count([&] { training.step(2); });
  }
};

const Counts one_wait{{"kzero::engine::step_sums_read", 1}};

deck::Config deck_of(Dtype precision, Index layers, Index global_batch) {
  deck::Config config = small_deck(precision);
  config.model.layers = layers;
  config.train.global_batch = global_batch;
  return config;
}

TEST_F(HostWaits, AreOneAStepWhateverTheUnitsAndMicroBatches) {
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    for (const Index layers : {1, 4}) {
      for (const Index micro_batches : {4, 12})
        EXPECT_EQ(of_a_step(deck_of(precision, layers, micro_batches)), one_wait)
            << layers << " layers, " << micro_batches << " micro-batches";
    }
  }
}

TEST_F(HostWaits, AreOneAStepInEveryStage) {
  for (const Index stage : {1, 2, 3}) {
    deck::Config config = deck_of(Dtype::bf16, 3, 8);
    config.zero.stage = stage;
    config.recompute = {.mode = deck::RecomputeMode::full, .offload = deck::Offload::host};
    EXPECT_EQ(of_a_step(config), one_wait) << "stage " << stage;
  }
}

TEST_F(HostWaits, AreOneAStepThatIsVerified) {
  deck::Config config = deck_of(Dtype::bf16, 3, 8);
  config.run.verify_every = 1;
  for (const Index stage : {0, 3}) {
    config.zero.stage = stage;
    EXPECT_EQ(of_a_step(config), one_wait) << "stage " << stage;
  }
}

TEST_F(HostWaits, AreOneAStepOfMuon) {
  deck::Config config = deck_of(Dtype::bf16, 4, 4);
  config.optimizer.kind = deck::OptimizerKind::muon;
  EXPECT_EQ(of_a_step(config), one_wait);
}

TEST_F(HostWaits, AreOneAnEvaluation) {
  const grid::Group group = first_ranks(launch_ranks());
  Training training(deck_of(Dtype::bf16, 3, 8), group);
  training.engine->initialise({});
  for (const Index batches : {1, 3}) {
    EXPECT_EQ(count([&] { training.engine->validate(batches, *training.dataset.training); }),
              one_wait);
  }
}

TEST_F(HostWaits, AreCounted) {
  const runtime::Execution exec;
  EXPECT_EQ(count([&] { exec.fence("kzero::tests::wait"); }), (Counts{{"kzero::tests::wait", 1}}));
  const Kokkos::View<char*> device("kzero::tests::view", 3);
  const Counts found = count([&] { from_device(device); });
  EXPECT_EQ(found.at("copy, not pinned"), 1);
  EXPECT_GE(found.size(), 2U) << "that a blocking copy waits is seen as well";
}

}  // namespace
}  // namespace kzero::tests
