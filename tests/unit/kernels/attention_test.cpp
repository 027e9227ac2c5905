#include "unit/kernels/attention_cases.hpp"

namespace kzero::kernels {

namespace {

template <class T>
class Attention : public testing::Test {};
TYPED_TEST_SUITE(Attention, Elements, );

TYPED_TEST(Attention, MatchesThePlainLoop) {
  for (const Index sequence : {1, 5, 127, 128, 129, 300}) {
    for (const Index head_width : {1, 16, 33, 64})
      check_attention<Chosen, TypeParam>(make_shape(2, sequence, 3, head_width), 6);
  }
}

TYPED_TEST(Attention, QueryHeadsShareKeysAndValues) {
  for (const Index group : {2, 3, 5}) {
    for (const Index slots : {1, 4, 20})
      check_attention<Chosen, TypeParam>(make_shape(2, 97, 2, 6, group), slots);
  }
}

TYPED_TEST(Attention, NeedsNoMoreScratchThanOneSlot) {
  for (const Index slots : {1, 2, 4})  // six heads
    check_attention<Chosen, TypeParam>(make_shape(2, 129, 3, 16), slots);
}

TYPED_TEST(Attention, TilesMatchThePlainLoop) {
  for (const AttentionShape& shape : tiled_shapes())
    check_attention<Tiled<DeviceArithmetic>, TypeParam>(shape);
}

}  // namespace

}  // namespace kzero::kernels
