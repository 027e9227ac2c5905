// Fails a program of the stand-ins that ends with what no program may leave behind.
#include <gtest/gtest.h>

#include <algorithm>

#include "doubles/cuda_runtime.hpp"
#include "doubles/cuda_state.hpp"

namespace kzero::doubles {

namespace {

class Ending : public testing::Environment {
 public:
  void TearDown() override {
    for (const std::string& what : take_violations()) ADD_FAILURE() << what;
    EXPECT_EQ(std::ranges::count_if(cuda().streams,
                                    [](auto stream) { return stream->lives && !stream->is_kept; }),
              0)
        << "streams left";
    EXPECT_EQ(std::ranges::count_if(cuda().events, [](auto event) { return event->lives; }), 0)
        << "events left";
  }
};

[[maybe_unused]] const auto* ending = testing::AddGlobalTestEnvironment(new Ending);

}  // namespace

}  // namespace kzero::doubles
