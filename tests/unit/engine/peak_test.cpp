#include "engine/arithmetic.hpp"

#include <gtest/gtest.h>

#include "support/training.hpp"

namespace kzero::tests {
namespace {

// Devices of other builds, including the stand-in, have no GEMM library.
#ifdef KOKKOS_ENABLE_CUDA
constexpr Index width = 4096;
#else
constexpr Index width = 768;
#endif

TEST(Peak, IsMeasuredOnASmallProductWhereALargeOneWouldTakeLong) {
  const grid::Group group = first_ranks(launch_ranks());
  const auto gemm = tensor::make_gemm(deck::GemmBackend::automatic);
  const metrics::Peak peak = engine::find_peak(small_deck(), group, *gemm);
  EXPECT_EQ(peak.measured_width, width);
  EXPECT_GT(peak.flops_per_second, 0);
}

TEST(Peak, OfTheDeckIsNotMeasured) {
  const grid::Group group = first_ranks(launch_ranks());
  const auto gemm = tensor::make_gemm(deck::GemmBackend::automatic);
  deck::Config config = small_deck();
  config.run.peak_tflops = 0.5;
  const metrics::Peak peak = engine::find_peak(config, group, *gemm);
  EXPECT_EQ(peak.measured_width, 0);
  EXPECT_EQ(peak.flops_per_second, 5e11 * group.size());
}

}  // namespace
}  // namespace kzero::tests
