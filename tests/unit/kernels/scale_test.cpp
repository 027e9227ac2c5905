#include "kernels/scale.hpp"

#include <gtest/gtest.h>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

template <class T>
class Scale : public testing::Test {};

TYPED_TEST_SUITE(Scale, Elements);

TYPED_TEST(Scale, RoundsTheProductOnce) {
  std::vector<TypeParam> values;
  for (int i = 0; i < 1003; ++i) values.emplace_back(0.37F * static_cast<float>(i) - 100);
  const Guarded<TypeParam> x(values);
  scale_by<TypeParam>(Execution(), 1.7F, x.vector());
  const auto scaled = x.host();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto expected = static_cast<TypeParam>(1.7F * static_cast<float>(values[i]));
    EXPECT_EQ(static_cast<float>(scaled[i]), static_cast<float>(expected)) << i;
  }
}

}  // namespace

}  // namespace kzero::kernels
