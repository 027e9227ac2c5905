#include "unit/kernels/host_tiles/emulated_tiles.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace kzero::kernels {

namespace {

using Tiles = EmulatedTiles;

std::string fault_of(const std::function<void()>& use) {
  try {
    use();
  } catch (const Tiles::Fault& fault) {
    return fault.what();
  }
  return "";
}

TileConfig shapes(int rows0, int row_bytes0) {
  TileConfig config;
  for (int i = 0; i < 3; ++i) config.rows[i] = 16, config.row_bytes[i] = 64;
  config.rows[0] = static_cast<std::uint8_t>(rows0);
  config.row_bytes[0] = static_cast<std::uint16_t>(row_bytes0);
  return config;
}

std::string fault_of(const TileConfig& config) {
  return fault_of([&] { const EmulatedScope scope(config); });
}

TEST(EmulatedTiles, AreUsedWithinAConfigurationOnly) {
  float memory[256] = {};
  const auto use = [&] { Tiles::load<1>(memory, 64); };
  EXPECT_EQ(fault_of(use), "used without a configuration");
  EXPECT_EQ(fault_of(&Tiles::release), "released without a configuration");
  {
    const EmulatedScope scope(shapes(16, 64));
    EXPECT_EQ(fault_of(use), "");
    EXPECT_EQ(fault_of([] { Tiles::zero<3>(); }), "a tile has no shape");
    EXPECT_EQ(fault_of([] { Tiles::configure(shapes(16, 64)); }), "configured twice");
  }
  EXPECT_EQ(fault_of(use), "used without a configuration");
}

TEST(EmulatedTiles, RefuseWrongConfigurations) {
  EXPECT_EQ(fault_of(shapes(16, 64)), "");
  EXPECT_EQ(fault_of(shapes(17, 64)), "a tile is too large");
  EXPECT_EQ(fault_of(shapes(16, 68)), "a tile is too large");
  EXPECT_EQ(fault_of(shapes(0, 64)), "a tile has rows or bytes alone");
  TileConfig config = shapes(16, 64);
  config.rows[8] = 1, config.row_bytes[8] = 4;
  EXPECT_EQ(fault_of(config), "there are eight tiles");
  config = shapes(16, 64), config.palette = 0;
  EXPECT_EQ(fault_of(config), "the palette is not 1");
  config = shapes(16, 64), config.start_row = 1;
  EXPECT_EQ(fault_of(config), "begins within a tile");
  config = shapes(16, 64), config.reserved[13] = 1;
  EXPECT_EQ(fault_of(config), "a reserved byte is not zero");
}

TEST(EmulatedTiles, MultiplyTilesOfMatchingShapesOnly) {
  const auto fault = [](const TileConfig& config) {
    const EmulatedScope scope(config);
    return fault_of([] { Tiles::add_products<0, 1, 2>(); });
  };
  EXPECT_EQ(fault(shapes(16, 64)), "");
  EXPECT_EQ(fault(shapes(15, 64)), "A has not the rows of the sums");
  EXPECT_EQ(fault(shapes(16, 60)), "B has not the columns of the sums");
  TileConfig config = shapes(16, 64);
  config.rows[2] = 15;
  EXPECT_EQ(fault(config), "A has not as many pairs as B");
  const EmulatedScope scope(shapes(16, 64));
  EXPECT_EQ(fault_of([] { Tiles::add_products<0, 1, 1>(); }), "a tile is two operands");
}

/// The upper left element of sum + a b, where a and b have one pair each in every tile.
float one_product(float sum, Bf16Pair a, Bf16Pair b) {
  const EmulatedScope scope(shapes(16, 64));
  std::vector<float> sums(256, sum);
  std::vector<Bf16Pair> x(256), y(256);
  x[0] = a, y[0] = b;
  Tiles::load<0>(sums.data(), 64);
  Tiles::load<1>(x.data(), 64);
  Tiles::load<2>(y.data(), 64);
  Tiles::add_products<0, 1, 2>();
  Tiles::store<0>(sums.data(), 64);
  return sums[0];
}

TEST(EmulatedTiles, FlushSubnormalsAndRoundToEven) {
  const auto pair = [](float first, float second) {
    return Bf16Pair{static_cast<bf16>(first), static_cast<bf16>(second)};
  };
  EXPECT_EQ(one_product(1, pair(2, 3), pair(5, 7)), 32);
  EXPECT_EQ(one_product(0, pair(0x1p-127F, 0), pair(0x1p100F, 0)), 0) << "an operand";
  EXPECT_EQ(one_product(0, pair(0x1p-100F, 0), pair(0x1p-27F, 0)), 0) << "a product";
  EXPECT_EQ(one_product(0x1p-127F, pair(0, 0), pair(0, 0)), 0) << "the sum before";
  EXPECT_EQ(one_product(0, pair(0x1p-100F, 0), pair(0x1p-26F, 0)), 0x1p-126F);
  EXPECT_EQ(one_product(1, pair(0x1p-24F, 0), pair(1, 0)), 1) << "half to even, down";
  EXPECT_EQ(one_product(1 + 0x1p-23F, pair(0x1p-24F, 0), pair(1, 0)), 1 + 0x1p-22F) << "and up";
  EXPECT_EQ(one_product(-1, pair(1, 0x1p-24F), pair(1, 1)), 0) << "a pair's terms meet first";
}

TEST(EmulatedTiles, LoadsAndStoresKeepToTheShape) {
  std::vector<float> memory(256, 1), result(256, -1);
  const EmulatedScope scope(shapes(2, 12));
  Tiles::load<0>(memory.data(), 64);
  Tiles::store<0>(result.data(), 64);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(result[i], i / 16 < 2 && i % 16 < 3 ? 1 : -1) << i;
}

}  // namespace

}  // namespace kzero::kernels
