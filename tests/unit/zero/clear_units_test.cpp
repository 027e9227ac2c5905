#include "zero/clear_units.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/element_blocks.hpp"
#include "support/guarded.hpp"
#include "support/launches.hpp"
#include "support/threads.hpp"

#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

namespace kzero::zero {
namespace {

TEST(ClearUnits, ZeroesEachUnitByItself) {
  const tests::Guarded<float> memory(std::vector<float>(1000, 1.0F));
  float* const data = memory.data();
  const tests::Launches launches("kzero::kernels::fill");
  clear_units<float>(tensor::Execution(), {data + 10, data + 300, data + 300, data + 700},
                     data + 990);
  EXPECT_EQ(launches.count(), 3) << "one of the units is empty";
  std::vector<float> expected(1000, 0.0F);
  std::fill_n(expected.begin(), 10, 1.0F);
  std::fill_n(expected.end() - 10, 10, 1.0F);
  EXPECT_EQ(memory.host(), expected);
}

TEST(ClearUnits, OfNothingDoesNothing) {
  clear_units<float>(tensor::Execution(), {}, nullptr);
  clear_units<float>(tensor::Execution(), {nullptr, nullptr}, nullptr);
}

#if defined(KOKKOS_ENABLE_OPENMP) && !defined(__SANITIZE_THREAD__) && \
    !defined(KOKKOS_ENABLE_CUDA) && !defined(KOKKOS_ENABLE_HIP)
// Otherwise threads would update memory of other NUMA domains.
TEST(ClearUnits, ThreadsUpdateWhatTheyCleared) {
  if constexpr (tensor::on_host) {
    constexpr Index units = 4, blocks = 100, each = blocks * kernels::element_block;
    const auto execs = tests::thread_counts();
    const auto threads = std::ssize(execs);
    std::vector<int> clears(units * each), updates(units * each);
    for (Index u = 0; u < units; ++u) {
      int *const cleared = clears.data() + u * each, *const updated = updates.data() + u * each;
      Kokkos::parallel_for("kzero::tests::clear",
                           tensor::Range(execs.back(), 0, each),  // as kernels::fill
                           [=](Index i) { cleared[i] = omp_get_thread_num(); });
      kernels::for_element_blocks("kzero::tests::update", execs.back(), each,
                                  [=](const auto&, Index begin, Index count) {
                                    std::fill_n(updated + begin, count, omp_get_thread_num());
                                  });
    }
    EXPECT_EQ(*std::max_element(updates.begin(), updates.end()), threads - 1);
    const Index others =
        std::inner_product(clears.begin(), clears.end(), updates.begin(), Index{0}, std::plus<>(),
                           [](int a, int b) { return a == b ? 0 : 1; });
    EXPECT_LE(others, units * threads * kernels::element_block) << "a block at each border";
  }
}
#endif

}  // namespace
}  // namespace kzero::zero
