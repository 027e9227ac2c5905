#include "unit/kernels/product_cases.hpp"

namespace kzero::kernels {

namespace {

template <class E, void (*function)(const HostProduct<E>&)>
struct Way {
  using Element = E;
  static constexpr auto multiply = function;
};

template <class Way>
class HostProductOf : public testing::Test {};
using Ways = testing::Types<Way<float, &multiply<float>>, Way<Bf16Pair, &multiply<Bf16Pair>>,
                            Way<Bf16Pair, &multiply_widened>>;
TYPED_TEST_SUITE(HostProductOf, Ways, );

TYPED_TEST(HostProductOf, MatchesThePlainLoop) {
  for (const Index m : {1, 5, 6, 7, 9, 13, 96}) {
    for (const Index vectors : {1, 2, 3, 4, 5, 9}) {
      for (const Index k : {0, 1, 7, 64}) {
        for (const bool transposed : {false, true})
          for (const bool adds : {false, true})
            check_product<typename TypeParam::Element>(
                {m, vectors * host_lanes, k, transposed, adds}, TypeParam::multiply);
      }
    }
  }
}

// The result for a row must not depend on the other rows of its tile, because the mask cuts
// attention's tiles.
TYPED_TEST(HostProductOf, RowsDoNotDependOnTheirNumber) {
  using E = typename TypeParam::Element;
  constexpr Index m = 13, n = 4 * host_lanes, k = 37;
  const std::type_identity<E> type;
  const auto a = elements(type, m * k, 1), b = elements(type, k * n, 2);
  std::vector<float> all(m * n), alone(n);
  TypeParam::multiply({m, n, k, {a.data(), k}, b.data(), n, all.data(), n});
  for (Index i = 0; i < m; ++i) {
    TypeParam::multiply({1, n, k, {a.data() + i * k, k}, b.data(), n, alone.data(), n});
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + i * n)) << i;
  }
}

}  // namespace

}  // namespace kzero::kernels
