// The order in which micro-batch buffers are filled, copied to the device and refilled.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/batches.hpp"
#include "noted_events.hpp"

namespace kzero::tests {
namespace {

namespace tools = Kokkos::Tools::Experimental;

tools::EventSet tool_before;  // the callbacks before recording
std::vector<std::string> buffer_calls;
std::map<const void*, std::string> short_names;

/// A short name for each address, in order of first use: a0, a1, ...
const std::string& short_name(const void* address) {
  return short_names.try_emplace(address, "a" + std::to_string(short_names.size())).first->second;
}

void note_copy_from(Kokkos::Tools::SpaceHandle to, const char* to_name, const void* to_data,
                    Kokkos::Tools::SpaceHandle from, const char* from_name, const void* from_data,
                    std::uint64_t bytes) {
  buffer_calls.push_back("copy " + short_name(from_data));
  if (tool_before.begin_deep_copy)
    tool_before.begin_deep_copy(to, to_name, to_data, from, from_name, from_data, bytes);
}

/// Samples of token 0. Records the addresses that they are written to.
class ZeroSamples : public data::BatchSource {
 public:
  void batch(Index, Index count, Token* inputs, Token* targets) const override {
    buffer_calls.push_back("fill " + short_name(inputs));
    std::fill_n(inputs, count, Token{});
    std::fill_n(targets, count, Token{});
  }
};

TEST(BatchBuffers, AreFilledAgainOnceTheDeviceHasThem) {
  memory::Arenas measuring;
  engine::Batches(measuring, {.batch = 2, .sequence = 1, .vocab = 3});
  memory::Ledger ledger;
  memory::Arenas arenas(measuring, ledger);
  engine::Batches batches(arenas, {.batch = 2, .sequence = 1, .vocab = 3});
  tool_before = tools::get_callbacks();
  tools::set_begin_deep_copy_callback(&note_copy_from);
  note_event_calls([](EventCall call, const void* event) {
    buffer_calls.push_back((call == EventCall::record ? "record " : "wait for ") +
                           short_name(event));
  });
  for (int load = 0; load < 4; ++load) batches.load({}, ZeroSamples(), 0);
  note_event_calls({});
  tools::set_begin_deep_copy_callback(tool_before.begin_deep_copy);
  if (tensor::on_host) {
    for (const std::string& call : buffer_calls) EXPECT_NE(call.substr(0, 4), "copy");
    return;
  }
  // Two alternating buffers, each with its own event.
  const std::vector<std::string> twice{"wait for a0", "fill a1", "copy a1", "record a0",
                                       "wait for a2", "fill a3", "copy a3", "record a2"};
  std::vector<std::string> expected = twice;
  expected.insert(expected.end(), twice.begin(), twice.end());
  EXPECT_EQ(buffer_calls, expected);
}

}  // namespace
}  // namespace kzero::tests
