#include "kernels/device/tensor_core_product.hpp"

#include "kernels/device/warp_fragments.hpp"
#include "unit/kernels/tensor_cores/lanes.hpp"
#include "unit/kernels/tensor_cores/whole_fragments.hpp"
#include "unit/kernels/tile_products.hpp"

namespace kzero::kernels {

namespace {

template <class T, int rows, int columns, int warps>
using WholeWarps = TensorCoreProduct<WholeFragments<T>, T, rows, columns, warps, 1>;
template <class T, int rows, int columns, int threads>
using Lanes =
    TensorCoreProduct<WarpFragments<T, LaneInstructions>, T, rows, columns, threads / 32, 32>;

template <class T>
class TensorCoreProducts : public testing::Test {};
using SixteenBits = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(TensorCoreProducts, SixteenBits, );

// One warp has all fragments, a part of a row of fragments, a row, several rows, or none.
TYPED_TEST(TensorCoreProducts, MatchLoops) {
  check_product<WholeWarps, TypeParam, 16, 16, 1>(16, 16);
  check_product<WholeWarps, TypeParam, 64, 128, 1>(32, 128);
  check_product<WholeWarps, TypeParam, 16, 64, 2>(64, 64);
  check_product<WholeWarps, TypeParam, 32, 64, 4>(48, 64);
  check_product<WholeWarps, TypeParam, 64, 64, 4>(16, 64);
  check_product<WholeWarps, TypeParam, 64, 32, 4>(128, 32);
  check_product<WholeWarps, TypeParam, 64, 32, 2>(16, 32);
  check_product<WholeWarps, TypeParam, 32, 16, 4>(64, 16);
}

TYPED_TEST(TensorCoreProducts, LeaveOutColumns) {
  check_product<WholeWarps, TypeParam, 32, 128, 4>(16, 80);
  check_product<WholeWarps, TypeParam, 64, 64, 4>(16, 16);
}

TYPED_TEST(TensorCoreProducts, MatchLoopsInLanes) {
  check_product<Lanes, TypeParam, 16, 16, 32>(16, 16, run_lanes);
  check_product<Lanes, TypeParam, 32, 64, 128>(48, 64, run_lanes);
  check_product<Lanes, TypeParam, 32, 16, 128>(16, 16, run_lanes);
  check_product<Lanes, TypeParam, 64, 64, 128>(32, 48, run_lanes);
}

}  // namespace

}  // namespace kzero::kernels
