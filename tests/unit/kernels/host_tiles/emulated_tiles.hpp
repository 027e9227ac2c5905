// Tile registers in plain C++. They enforce the rules that Intel's manual gives for AMX, and the
// order of calls: a thread configures once and releases its configuration.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "kernels/host/tiles.hpp"

namespace kzero::kernels {

class EmulatedTiles {
 public:
  /// On processors these errors are #GP or #UD, except for the order of calls.
  struct Fault : std::logic_error {
    using std::logic_error::logic_error;
  };

  /// Operations since the configuration.
  struct Counts {
    int loads = 0, products = 0, stores = 0;
  };

  static void configure(const TileConfig& config) {
    require(!thread().configured, "configured twice");
    require(config.palette == 1, "the palette is not 1");
    require(config.start_row == 0, "begins within a tile");
    for (const std::uint8_t reserved : config.reserved)
      require(reserved == 0, "a reserved byte is not zero");
    for (int i = 0; i < 16; ++i) {
      const int rows = config.rows[i], row_bytes = config.row_bytes[i];
      require(i < count || (rows == 0 && row_bytes == 0), "there are eight tiles");
      require(rows <= side && row_bytes <= side * 4, "a tile is too large");
      require((rows == 0) == (row_bytes == 0), "a tile has rows or bytes alone");
    }
    thread() = {.configured = true, .config = config, .counts = {}, .tiles = {}};
  }

  static void release() {
    require(thread().configured, "released without a configuration");
    thread().configured = false;
  }

  template <int tile>
  static void zero() {
    check_tile<tile>();
    std::memset(thread().tiles[tile], 0, sizeof(Tile));
  }

  /// Clears everything beyond the tile's rows and bytes.
  template <int tile>
  static void load(const void* from, Index row_bytes) {
    zero<tile>();
    ++thread().counts.loads;
    const auto* bytes = static_cast<const std::byte*>(from);
    for (int i = 0; i < rows(tile); ++i)
      std::memcpy(thread().tiles[tile][i], bytes + i * row_bytes, columns(tile) * 4);
  }

  template <int tile>
  static void store(void* to, Index row_bytes) {
    check_tile<tile>();
    ++thread().counts.stores;
    auto* bytes = static_cast<std::byte*>(to);
    for (int i = 0; i < rows(tile); ++i)
      std::memcpy(bytes + i * row_bytes, thread().tiles[tile][i], columns(tile) * 4);
  }

  /// TDPBF16PS: sums the first terms and the second terms of the pairs separately, by fused
  /// multiply-adds from zero. Adds the two sums, then adds the result to the element. Subnormal
  /// operands and results count as zero. Rounds to nearest.
  template <int sum, int a, int b>
  static void add_products() {
    check_tile<sum>(), check_tile<a>(), check_tile<b>();
    require(sum != a && sum != b && a != b, "a tile is two operands");
    require(rows(sum) == rows(a), "A has not the rows of the sums");
    require(columns(sum) == columns(b), "B has not the columns of the sums");
    require(columns(a) == rows(b), "A has not as many pairs as B");
    ++thread().counts.products;
    for (int i = 0; i < rows(sum); ++i) {
      for (int j = 0; j < columns(sum); ++j) {
        float first = 0, second = 0;
        for (int k = 0; k < columns(a); ++k) {
          const Bf16Pair x = pair(a, i, k), y = pair(b, k, j);
          first = flushed(std::fma(value(x.first), value(y.first), first));
          second = flushed(std::fma(value(x.second), value(y.second), second));
        }
        const float old = flushed(std::bit_cast<float>(thread().tiles[sum][i][j]));
        const float result = flushed(old + flushed(first + second));
        thread().tiles[sum][i][j] = std::bit_cast<std::uint32_t>(result);
      }
    }
  }

  static Counts counts() { return thread().counts; }
  static bool configured() { return thread().configured; }

 private:
  static constexpr int count = 8, side = 16;
  using Tile = std::uint32_t[side][side];

  struct Thread {
    bool configured = false;
    TileConfig config;
    Counts counts;
    Tile tiles[count] = {};
  };

  static Thread& thread() {
    thread_local Thread state;
    return state;
  }

  static void require(bool condition, const char* what) {
    if (!condition) throw Fault(what);
  }

  template <int tile>
  static void check_tile() {
    static_assert(tile >= 0 && tile < count);
    require(thread().configured, "used without a configuration");
    require(rows(tile) > 0, "a tile has no shape");
  }

  static int rows(int tile) { return thread().config.rows[tile]; }
  static int columns(int tile) { return thread().config.row_bytes[tile] / 4; }
  static Bf16Pair pair(int tile, int i, int j) {
    return std::bit_cast<Bf16Pair>(thread().tiles[tile][i][j]);
  }
  static float value(bf16 x) { return flushed(static_cast<float>(x)); }
  static float flushed(float x) {
    return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0F, x) : x;
  }
};

/// The products of EmulatedTiles.
inline constexpr ProductBackend<Bf16Pair> emulated_products{
    &configure_tiles<EmulatedTiles>, &multiply_in_tiles<EmulatedTiles>, &EmulatedTiles::release};

/// Configures the thread's tiles during its lifetime.
struct EmulatedScope {
  EmulatedScope() { emulated_products.begin(); }
  explicit EmulatedScope(const TileConfig& config) { EmulatedTiles::configure(config); }
  EmulatedScope(const EmulatedScope&) = delete;
  EmulatedScope& operator=(const EmulatedScope&) = delete;
  ~EmulatedScope() { EmulatedTiles::release(); }
};

}  // namespace kzero::kernels
