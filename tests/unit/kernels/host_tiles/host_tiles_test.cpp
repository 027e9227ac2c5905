#include "kernels/host/tiles.hpp"

#include <array>

#include "base/processor.hpp"
#include "support/same_bits.hpp"
#include "unit/kernels/host_tiles/emulated_tiles.hpp"
#include "unit/kernels/product_cases.hpp"

namespace kzero::kernels {

namespace {

constexpr std::type_identity<Bf16Pair> pairs_type;

/// Uses its own registers, as attention does.
std::vector<float> multiply_by(const ProductBackend<Bf16Pair>& backend, HostProduct<Bf16Pair> p,
                               std::vector<float> c) {
  p.c = c.data();
  backend.begin();
  backend.multiply(p);
  backend.end();
  return c;
}

void check(const ProductCase& c) {
  check_product<Bf16Pair>(c, [](const HostProduct<Bf16Pair>& product) {
    const EmulatedScope scope;
    emulated_products.multiply(product);
  });
}

// The bound is that of a sum in any order. Tiles flush subnormals, which are far below the bound.
TEST(HostTiles, MatchThePlainLoop) {
  for (const Index m : {1, 15, 16, 17, 32, 33, 96}) {
    for (const Index n : {1, 8, 16, 31, 32, 48, 64}) {
      for (const Index k : {0, 1, 15, 16, 17, 129}) {
        for (const bool transposed : {false, true})
          for (const bool adds : {false, true}) check({m, n, k, transposed, adds});
      }
    }
  }
}

constexpr std::array<Index, 12> head_widths{1, 16, 17, 31, 32, 33, 64, 80, 127, 128, 129, 256};

/// Calls f(product without C) for the products of attention's tiles of `count` query rows and 64
/// keys. The transposed pairs of A are 64 apart.
template <class F>
void for_each_product(Index count, Index head_width, const std::vector<Bf16Pair>& a,
                      const std::vector<Bf16Pair>& b, const F& f) {
  const Index width = round_up(head_width, 2 * host_lanes), pairs = ceil_div(head_width, 2);
  const auto c = [](HostProduct<Bf16Pair> p, Index stride, bool adds) {
    p.c_stride = stride, p.adds = adds;
    return p;
  };
  f(c({count, 64, pairs, {a.data(), width / 2}, b.data(), 64}, 64, false));
  for (const bool adds : {false, true})
    f(c({count, width, 32, {a.data(), 32}, b.data(), width}, width, adds));
  f(c({64, width, ceil_div(count, 2), {a.data(), 1, 64}, b.data(), width}, width, true));
}

/// Small integers, whose sums are exact in any order.
std::vector<Bf16Pair> integers(Index count, unsigned seed) {
  const auto random = numbers<float>(2 * count, seed, 8);
  std::vector<Bf16Pair> pairs;
  for (Index i = 0; i < count; ++i) {
    pairs.push_back({static_cast<bf16>(std::round(random[2 * i])),
                     static_cast<bf16>(std::round(random[2 * i + 1]))});
  }
  return pairs;
}

/// Expects the bits of the vector product for all shapes that attention uses.
void expect_exact(const ProductBackend<Bf16Pair>& backend) {
  const auto a = integers(96 * 256, 1), b = integers(256 * 256, 2);
  const std::vector<float> before(96 * 256, 3);
  for (const Index head_width : head_widths) {
    for (Index count = 1; count <= 96; count += head_width == 64 ? 1 : 5) {
      for_each_product(count, head_width, a, b, [&](const HostProduct<Bf16Pair>& p) {
        EXPECT_EQ(multiply_by(backend, p, before), multiply_by({}, p, before))
            << p.m << " x " << p.n << " x " << p.k;
      });
    }
  }
}

TEST(HostTiles, GiveTheExactSumsOfIntegers) { expect_exact(emulated_products); }

TEST(HostTiles, OfThisProcessorGiveTheExactSumsOfIntegers) {
  if (!amx_available()) GTEST_SKIP() << "this processor has no AMX, or may not use it";
  expect_exact(product_backend<Bf16Pair>());
}

TEST(HostTiles, OfThisProcessorHaveTheBitsOfTheManual) {
  if (!amx_available()) GTEST_SKIP() << "this processor has no AMX, or may not use it";
  const auto a = elements(pairs_type, 96 * 256, 1), b = elements(pairs_type, 256 * 256, 2);
  const std::vector<float> before = numbers<float>(96 * 256, 3);
  for (const Index head_width : head_widths) {
    for_each_product(95, head_width, a, b, [&](const HostProduct<Bf16Pair>& p) {
      EXPECT_EQ(multiply_by(product_backend<Bf16Pair>(), p, before),
                multiply_by(emulated_products, p, before));
    });
  }
}

// As for vectors: the mask cuts attention's tiles, and the end of the sequence cuts those of the
// last rows.
TEST(HostTiles, ElementsDoNotDependOnTheirNumber) {
  constexpr Index m = 39, n = 72, k = 37;
  const auto a = elements(pairs_type, m * k, 1), b = elements(pairs_type, k * n, 2);
  std::vector<float> all(m * n), alone(1);
  const EmulatedScope scope;
  for (const Strided<Bf16Pair> rows : {Strided<Bf16Pair>{a.data(), k}, {a.data(), 1, m}}) {
    emulated_products.multiply({m, n, k, rows, b.data(), n, all.data(), n});
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; j += 7) {
        const Strided<Bf16Pair> row{rows.data + i * rows.row, rows.row, rows.column};
        emulated_products.multiply({1, 1, k, row, b.data() + j, n, alone.data(), n});
        EXPECT_EQ(alone[0], all[i * n + j]) << i << ", " << j;
      }
    }
  }
}

// A product takes twice as many cycles as a load.
TEST(HostTiles, LoadNoMoreThanATileForAProduct) {
  const auto a = integers(96 * 32, 1), b = integers(32 * 64, 2);
  std::vector<float> c(96 * 64);
  const EmulatedScope scope;
  emulated_products.multiply({96, 64, 32, {a.data(), 32}, b.data(), 64, c.data(), 64});
  const EmulatedTiles::Counts counts = EmulatedTiles::counts();
  EXPECT_EQ(counts.products, 6 * 4 * 2);
  EXPECT_EQ(counts.loads, 6 * 4 * 2);
  EXPECT_EQ(counts.stores, 6 * 4);
}

}  // namespace

}  // namespace kzero::kernels
