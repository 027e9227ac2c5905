// Tests of the guards, on whose detection the kernel tests depend.
#include "support/guarded.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace kzero::tests {

namespace {

/// Adds 1 to element `at`, inside or outside a buffer of five.
template <class T>
void change(Index at) {
  const Guarded<T> buffer(std::vector<T>(5, T(2.0F)));
  T* data = buffer.data();
  Kokkos::parallel_for(
      "kzero::tests::change", Kokkos::RangePolicy<tensor::Execution>(0, 1),
      KOKKOS_LAMBDA(Index) { data[at] = static_cast<T>(static_cast<float>(data[at]) + 1.0F); });
}

template <class T>
class Guards : public testing::Test {};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Guards, Elements, );

TYPED_TEST(Guards, NoticeWhatIsAddedOutside) {
  for (const Index at : {0, 4}) change<TypeParam>(at);
  EXPECT_NONFATAL_FAILURE(change<TypeParam>(-1), "before the buffer");
  EXPECT_NONFATAL_FAILURE(change<TypeParam>(-64), "before the buffer");
  EXPECT_NONFATAL_FAILURE(change<TypeParam>(5), "past the buffer's 5");
  EXPECT_NONFATAL_FAILURE(change<TypeParam>(68), "past the buffer's 5");
}

// Run by its own CTest entry if a host stands in for a device. It must end the program.
TEST(StandIn, DISABLED_EndsAHostThatTouchesTheDevicesMemory) {
  const Guarded<float> buffer(std::vector<float>(5, 2.0F));
  const volatile float* data = buffer.data();
  EXPECT_EQ(data[2], 2.0F);
}

}  // namespace

}  // namespace kzero::tests
