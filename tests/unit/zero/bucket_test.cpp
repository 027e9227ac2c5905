#include "zero/bucket.hpp"

#include <gtest/gtest.h>

#include "grid/process_grid.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"

namespace kzero::zero {
namespace {

param::FlatLayout layout_of(Index elements, Index ranks) {
  return {{{"unit", {{"values", {elements}}}}}, ranks};
}

template <class T>
std::vector<T> values_of(int rank, Index count) {
  // Magnitudes that differ by rank: another order of the sum would show in the bits.
  return tests::numbers<T>(count, 100 + rank, rank % 2 == 0 ? 1 : 300);
}

template <class T>
class Bucket : public testing::Test {};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Bucket, Elements);

TYPED_TEST(Bucket, AllReduceIsTheRankOrderedFp32SumRoundedOnce) {
  using T = TypeParam;
  const grid::Group group = grid::world_group();
  const int ranks = group.size();
  comm::Traffic traffic;
  const auto comm = comm::make_communicator("mpi", group, traffic);
  for (const Index elements : {1, 3, 31, 1000, 4099}) {
    const param::FlatLayout flat = layout_of(elements, ranks);
    const param::UnitLayout& layout = flat.unit(0);
    std::vector<T> expected;
    for (Index i = 0; i < layout.padded; ++i) {
      float sum = 0;
      for (int r = 0; r < ranks; ++r) sum += static_cast<float>(values_of<T>(r, layout.padded)[i]);
      expected.push_back(static_cast<T>(sum));
    }
    if (ranks == 1) expected = values_of<T>(0, layout.padded);
    for (const Index bytes : {1, 254, 1 << 20}) {
      if (elements / bytes > 100) continue;  // thousands of messages tell nothing new
      memory::Arenas measuring;
      const zero::Bucket measured(measuring, bytes, dtype_of<T>, flat);
      memory::Ledger ledger;
      memory::Arenas arenas(measuring, ledger);
      const zero::Bucket bucket(arenas, bytes, dtype_of<T>, flat);
      const tests::Guarded<T> unit(values_of<T>(group.rank(), layout.padded));
      traffic.reset();
      bucket.all_reduce<T>({}, *comm, layout, unit.data());
      EXPECT_TRUE(tests::same_bits(unit.host(), expected))
          << elements << " elements, bucket of " << bytes;
      for (const auto& [channel, volume] : traffic.volumes()) {
        EXPECT_EQ(volume.elements, exchanged_elements(layout.padded, ranks))
            << name_of(channel.operation);
        EXPECT_EQ(volume.bytes, volume.elements * bytes_of(dtype_of<T>));
      }
      EXPECT_EQ(traffic.volumes().size(), ranks == 1 ? 0U : 2U);
    }
  }
}

TEST(BucketMemory, IsWhatTheDeckAllowsAndNoMoreThanALargestUnitFills) {
  const auto bytes = [](Index size, Dtype dtype, Index ranks) {
    memory::Arenas measuring;
    static_cast<void>(zero::Bucket(measuring, size, dtype, layout_of(1 << 20, ranks)));
    return measuring.bytes()[position(memory::Category::buckets)];
  };
  EXPECT_EQ(bytes(1 << 20, Dtype::fp32, 1), 0) << "one rank sends nothing";
  EXPECT_EQ(bytes(1 << 20, Dtype::fp32, 4), 1 << 20);
  EXPECT_EQ(bytes(1 << 20, Dtype::bf16, 4), 1 << 20);
  EXPECT_LE(bytes(1000, Dtype::bf16, 3), round_up(1000, 64));
  EXPECT_EQ(bytes(1, Dtype::fp32, 64), 64 * 4) << "one element a rank is the least";
  EXPECT_EQ(bytes(1 << 30, Dtype::fp32, 4), 4 << 20);
}

TEST(ExchangedElements, AreTheSharesOfTheOthers) {
  EXPECT_EQ(exchanged_elements(12, 1), 0);
  EXPECT_EQ(exchanged_elements(12, 4), 9);
}

}  // namespace
}  // namespace kzero::zero
