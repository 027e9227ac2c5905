#include "kernels/attention_device_tiles.hpp"
#include "kernels/tensor_core_product.hpp"
#include "unit/kernels/attention_cases.hpp"
#include "unit/kernels/tensor_cores/whole_fragments.hpp"

namespace kzero::kernels {

namespace {

struct WholeWarpArithmetic {
  template <class T, int rows, int columns>
  using GemmProblem =
      TensorCoreProduct<WholeFragments<T>, T, rows, columns, team_warps, warp_lanes>;
};
using TensorCores = Tiled<WholeWarpArithmetic>;

template <class T>
class TensorCoreAttention : public testing::Test {};
using SixteenBits = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(TensorCoreAttention, SixteenBits, );

TYPED_TEST(TensorCoreAttention, MatchesThePlainLoop) {
  for (const AttentionShape& shape : tiled_shapes()) check_attention<TensorCores, TypeParam>(shape);
}

}  // namespace

}  // namespace kzero::kernels
