#include "zero/reduction.hpp"

#include <gtest/gtest.h>

#include "comm/backends.hpp"
#include "grid/process_grid.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"

namespace kzero::zero {
namespace {

param::FlatLayout one_unit_layout(Index elements, Index ranks) {
  return {{{"unit", {{"values", {elements}}}}}, ranks};
}

template <class T>
std::vector<T> values_of(int rank, Index count) {
  // Magnitudes differ by rank, so another order of the sum would change the bits.
  return tests::numbers<T>(count, 100 + rank, rank % 2 == 0 ? 1 : 300);
}

/// The rank-ordered fp32 sum of all ranks' values for a unit, including padding.
template <class T>
std::vector<float> sums_of(int ranks, Index count) {
  std::vector<float> total(count, 0.0F);
  for (int r = 0; r < ranks; ++r) {
    const auto values = values_of<T>(r, count);
    for (Index i = 0; i < count; ++i) total[i] += static_cast<float>(values[i]);
  }
  return total;
}

template <class T>
std::vector<T> rounded(const std::vector<float>& values, Index begin, Index count) {
  std::vector<T> result;
  for (Index i = begin; i < begin + count; ++i) result.push_back(static_cast<T>(values[i]));
  return result;
}

/// A reduction of one unit with its bucket, and the operands of its owner's sum.
template <class T>
struct Case {
  Case(const grid::Group& group, const param::FlatLayout& flat, Index bytes, comm::Overlap overlap)
      : comm(comm::make_communicator(deck::CommunicatorKind::mpi, overlap, group, traffic)),
        layout(flat.unit(0)),
        arenas(measured(bytes, flat, overlap), ledger),
        bucket(arenas, bytes, dtype_of<T>, flat, overlap),
        unit(values_of<T>(group.rank(), layout.padded)) {}

  static memory::Arenas measured(Index bytes, const param::FlatLayout& flat,
                                 comm::Overlap overlap) {
    memory::Arenas measuring;
    static_cast<void>(Bucket(measuring, bytes, dtype_of<T>, flat, overlap));
    return measuring;
  }

  /// Reduces the values of the first `ranks` ranks.
  void reduce(const OwnedSum<T>& sum, Result result, int ranks) {
    const tensor::Execution exec;
    ReductionStream stream;
    zero::Reduction<T> reduction(exec, stream, *comm, bucket, layout, unit.data(), sum, result,
                                 {Order::ranks, ranks});
    comm->wait(exec, reduction.finish());
  }

  comm::Traffic traffic;
  std::unique_ptr<comm::Communicator> comm;
  const param::UnitLayout& layout;
  memory::Ledger ledger;
  memory::Arenas arenas;
  zero::Bucket bucket;
  tests::Guarded<T> unit;
};

template <class T>
class Reduction : public testing::Test {
 protected:
  /// Calls f(flat layout, bytes of the bucket, overlap) for sizes and buckets that do not divide
  /// evenly.
  template <class F>
  void for_each_case(const F& f) {
    for (const Index elements : {1, 3, 31, 1000, 4099}) {
      const param::FlatLayout flat = one_unit_layout(elements, group.size());
      for (const Index bytes : {1, 254, 1 << 20}) {
        if (elements / bytes > 100) continue;  // thousands of messages add no coverage
        for (const auto overlap : {comm::Overlap::no, comm::Overlap::yes}) f(flat, bytes, overlap);
      }
    }
  }

  grid::Group group = grid::world_group();
};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Reduction, Elements, );

TYPED_TEST(Reduction, EverywhereIsTheRankOrderedFp32SumRoundedOnce) {
  using T = TypeParam;
  const int ranks = this->group.size();
  this->for_each_case([&](const param::FlatLayout& flat, Index bytes, comm::Overlap overlap) {
    Case<T> c(this->group, flat, bytes, overlap);
    c.reduce({nullptr, nullptr, c.unit.data() + this->group.rank() * c.layout.shard},
             Result::all_reduced, ranks);
    EXPECT_TRUE(tests::same_bits(
        c.unit.host(), rounded<T>(sums_of<T>(ranks, c.layout.padded), 0, c.layout.padded)))
        << c.layout.elements << " elements, bucket of " << bytes;
    for (const auto& [channel, volume] : c.traffic.outside()) {
      EXPECT_EQ(volume.elements, collective_elements(c.layout.padded, ranks))
          << name_of(channel.operation);
      EXPECT_EQ(volume.bytes, volume.elements * bytes_of(dtype_of<T>));
    }
    EXPECT_EQ(c.traffic.outside().size(), ranks == 1 ? 0U : 2U);
  });
}

TYPED_TEST(Reduction, ScatteredGoesToItsOwnerAlone) {
  using T = TypeParam;
  const int ranks = this->group.size(), me = this->group.rank();
  this->for_each_case([&](const param::FlatLayout& flat, Index bytes, comm::Overlap overlap) {
    Case<T> c(this->group, flat, bytes, overlap);
    const Index shard = c.layout.shard;
    const tests::Guarded<float> wide(tests::numbers<float>(shard, 7, 10));
    const tests::Guarded<T> narrow(shard);
    std::vector<float> expected(static_cast<std::size_t>(shard), 0.0F);
    const auto add = [&](int count) {
      for (int r = 0; r < count; ++r) {
        const auto values = values_of<T>(r, c.layout.padded);
        for (Index i = 0; i < shard; ++i) expected[i] += static_cast<float>(values[me * shard + i]);
      }
    };
    // As in the rounds of a step: the first round's sum, the next round's values added to it, and a
    // last round with values of some ranks only, which is rounded.
    add(ranks);
    c.reduce({nullptr, wide.data(), nullptr}, Result::reduce_scattered, ranks);
    EXPECT_TRUE(tests::same_bits(wide.host(), expected));
    add(ranks);
    c.reduce({wide.data(), wide.data(), nullptr}, Result::reduce_scattered, ranks);
    EXPECT_TRUE(tests::same_bits(wide.host(), expected));
    const int some = std::max(1, ranks / 2);
    add(some);
    c.reduce({wide.data(), nullptr, narrow.data()}, Result::reduce_scattered, some);
    EXPECT_TRUE(tests::same_bits(narrow.host(), rounded<T>(expected, 0, shard)));
    for (const auto& [channel, volume] : c.traffic.outside()) {
      const Index rounds = me < some ? 3 : 2;
      EXPECT_EQ(volume.elements, rounds * collective_elements(c.layout.padded, ranks));
    }
    EXPECT_TRUE(tests::same_bits(c.unit.host(), values_of<T>(me, c.layout.padded)))
        << "what was sent is not touched";
    EXPECT_EQ(c.traffic.outside().size(), ranks == 1 ? 0U : 1U);
  });
}

TEST(BucketMemory, IsWhatTheDeckAllowsAndNoMoreThanALargestUnitFills) {
  const auto bytes = [](Index size, Dtype dtype, Index ranks, comm::Overlap overlap) {
    memory::Arenas measuring;
    static_cast<void>(
        zero::Bucket(measuring, size, dtype, one_unit_layout(1 << 20, ranks), overlap));
    return measuring.bytes()[position(memory::Category::buckets)];
  };
  for (const auto overlap : {comm::Overlap::no, comm::Overlap::yes}) {
    EXPECT_EQ(bytes(1 << 20, Dtype::fp32, 1, overlap), 0) << "one rank sends nothing";
    EXPECT_EQ(bytes(1 << 20, Dtype::fp32, 4, overlap), 1 << 20);
    EXPECT_EQ(bytes(1 << 20, Dtype::bf16, 4, overlap), 1 << 20);
    EXPECT_LE(bytes(1000, Dtype::bf16, 3, overlap), round_up(1000, 64));
    EXPECT_EQ(bytes(1 << 30, Dtype::fp32, 4, overlap), 4 << 20);
  }
  EXPECT_EQ(bytes(1, Dtype::fp32, 64, comm::Overlap::no), 64 * 4) << "an element a rank";
  EXPECT_EQ(bytes(1, Dtype::fp32, 64, comm::Overlap::yes), 2 * 64 * 4) << "and slot";
}

TEST(ExchangedElements, AreTheSharesOfTheOthers) {
  EXPECT_EQ(collective_elements(12, 1), 0);
  EXPECT_EQ(collective_elements(12, 4), 9);
}

}  // namespace
}  // namespace kzero::zero
