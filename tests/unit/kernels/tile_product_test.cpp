#include "kernels/device/tile_product.hpp"

#include "unit/kernels/tile_products.hpp"

namespace kzero::kernels {

namespace {

template <class T>
class TileProducts : public testing::Test {};
TYPED_TEST_SUITE(TileProducts, Elements, );

TYPED_TEST(TileProducts, PlainMatchLoops) {
  check_product<PlainProduct, TypeParam, 16, 16, 1>(16, 16);
  check_product<PlainProduct, TypeParam, 64, 32, 128>(48, 32);
  check_product<PlainProduct, TypeParam, 32, 64, 128>(7, 64);
  check_product<PlainProduct, TypeParam, 16, 128, 128>(1, 128);
  check_product<PlainProduct, TypeParam, 16, 16, 128>(80, 16);
}

}  // namespace

}  // namespace kzero::kernels
