#include "kernels/tile_product_cuda.hpp"

#include "unit/kernels/tile_products.hpp"

namespace kzero::kernels {

namespace {

template <class T, int rows, int columns, int warps>
using TensorCore = TensorCoreProduct<T, rows, columns, warps, 1>;

template <class T>
class TensorCoreProducts : public testing::Test {};
using SixteenBits = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(TensorCoreProducts, SixteenBits, );

// One warp has all fragments, a part of a row of them, a row, several rows, or none.
TYPED_TEST(TensorCoreProducts, MatchLoops) {
  check_product<TensorCore, TypeParam, 16, 16, 1>(16, 16);
  check_product<TensorCore, TypeParam, 64, 128, 1>(32, 128);
  check_product<TensorCore, TypeParam, 16, 64, 2>(64, 64);
  check_product<TensorCore, TypeParam, 32, 64, 4>(48, 64);
  check_product<TensorCore, TypeParam, 64, 64, 4>(16, 64);
  check_product<TensorCore, TypeParam, 64, 32, 4>(128, 32);
  check_product<TensorCore, TypeParam, 64, 32, 2>(16, 32);
  check_product<TensorCore, TypeParam, 32, 16, 4>(64, 16);
}

TYPED_TEST(TensorCoreProducts, LeaveOutColumns) {
  check_product<TensorCore, TypeParam, 32, 128, 4>(16, 80);
  check_product<TensorCore, TypeParam, 64, 64, 4>(16, 16);
}

}  // namespace

}  // namespace kzero::kernels
