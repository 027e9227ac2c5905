#include "kernels/attention_device_tiles.hpp"
#include "kernels/tile_product_cuda.hpp"
#include "unit/kernels/attention_cases.hpp"

namespace kzero::kernels {

namespace {

using TensorCores = Tiled<TensorCoreArithmetic<team_warps, warp_lanes>>;

template <class T>
class TensorCoreAttention : public testing::Test {};
using SixteenBits = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(TensorCoreAttention, SixteenBits, );

TYPED_TEST(TensorCoreAttention, MatchesThePlainLoop) {
  for (const AttentionShape& shape : tiled_shapes()) check_attention<TensorCores, TypeParam>(shape);
}

}  // namespace

}  // namespace kzero::kernels
