#include "zero/reduction.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "comm/backends.hpp"
#include "comm/placement.hpp"
#include "data/sampler.hpp"
#include "grid/process_grid.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"
#include "support/tree_sum.hpp"

namespace kzero::zero {
namespace {

param::FlatLayout one_unit_layout(Index elements, Index ranks) {
  return {{{"unit", {{"values", {elements}}}}}, ranks};
}

/// A micro-batch's gradient.
template <class T>
std::vector<T> values_of(Index number, Index count) {
  // Magnitudes differ, so another order of the sum would change the bits.
  return tests::numbers<T>(count, 100 + static_cast<unsigned>(number), number % 2 == 0 ? 1 : 300);
}

template <class T>
std::vector<T> sum_of(Index terms, Index blocks, Index count) {
  const auto values = [&](Index number) { return values_of<T>(number, count); };
  std::vector<T> rounded;
  for (const float value : tests::tree_sum(terms, ceil_div(terms, blocks), values))
    rounded.push_back(static_cast<T>(value));
  return rounded;
}

/// How a test adds gradients.
struct Way {
  Index node_ranks = 1;
  Index terms = 1;
  Index blocks = 1;
  KeepsSums keeps = KeepsSums::owners;
  Index bytes = 1 << 20;
  comm::Overlap overlap = comm::Overlap::no;
};

/// A step's gradients of one unit, reduced round by round.
template <class T>
struct Case {
  Case(Index elements, const Way& chosen)
      : way(chosen),
        grid(0, 1, comm::filled_nodes(grid::world_group().size(), chosen.node_ranks)),
        group(grid.data()),
        plan({group.size(), group.shape().nodes, way.terms, way.blocks}, way.keeps),
        batches{way.terms, group.size(), 1, plan.nodes(), plan.route() == Route::step},
        comm(comm::make_communicator(deck::CommunicatorKind::mpi, way.overlap, group, traffic)),
        flat(one_unit_layout(elements, group.size())),
        layout(flat.unit(0)),
        arenas(measured(), ledger),
        bucket(arenas, way.bytes, dtype_of<T>, flat, way.overlap, plan),
        owner_open((plan.owner_open() + 1) * layout.shard),
        node_open((plan.node_open() + 1) * plan.nodes() * layout.shard),
        unit(layout.padded),
        out(layout.shard) {}

  memory::Arenas measured() const {
    memory::Arenas measuring;
    static_cast<void>(Bucket(measuring, way.bytes, dtype_of<T>, flat, way.overlap, plan));
    return measuring;
  }

  /// Runs all rounds. The sum is in `out` or, if all ranks want it, in `unit`.
  void run(Result result) {
    const tensor::Execution exec;
    const Index shard = layout.shard, wide = plan.nodes() * shard;
    for (Index round = 0; round < batches.rounds(); ++round) {
      const bool is_last = round + 1 == batches.rounds();
      if (batches.has(group.rank(), round))
        unit.set(values_of<T>(batches.number(group.rank(), round), layout.padded));
      UnitSums<T> sums{out.data(),
                       {owner_open.data(), owner_open.data() + shard, shard},
                       {node_open.data(), node_open.data() + wide, wide}};
      if (result == Result::all_reduced) sums.out = unit.data() + group.rank() * shard;
      ReductionStream stream;
      zero::Reduction<T> reduction(
          exec, stream, *comm, bucket, layout, {unit.data(), 0, unit.data()}, sums,
          is_last ? result : Result::reduce_scattered, Order::ranks, plan, round);
      comm->wait(exec, reduction.finish());
      exec.fence();
    }
  }

  Way way;
  comm::Traffic traffic;
  grid::ProcessGrid grid;
  const grid::Group& group;
  SumPlan plan;
  data::BatchPlan batches;
  std::unique_ptr<comm::Communicator> comm;
  param::FlatLayout flat;
  const param::UnitLayout& layout;
  memory::Ledger ledger;
  memory::Arenas arenas;
  zero::Bucket bucket;
  tests::Guarded<float> owner_open, node_open;
  tests::Guarded<T> unit, out;
};

std::string name_of(const Way& way) {
  return fmt::format("{} a node, {} terms, {} blocks, nodes keep sums {}, bucket {}",
                     way.node_ranks, way.terms, way.blocks, way.keeps == KeepsSums::nodes,
                     way.bytes);
}

template <class T>
class Reduction : public testing::Test {
 protected:
  /// Calls f(elements, way) for sizes, buckets and numbers that do not divide evenly.
  template <class F>
  void for_each_case(const F& f) {
    for (const auto& [elements, bytes] :
         {std::pair{1, 1 << 20}, {3, 1}, {31, 1}, {700, 254}, {4099, 1 << 20}}) {
      for (const Index node_ranks : {1, 2, 4}) {
        if (ranks % node_ranks != 0) continue;
        for (const Index terms : {ranks, ranks + 1, 4 * ranks}) {
          for (const Index blocks : {Index{1}, Index{4}, terms}) {
            for (const auto keeps : {KeepsSums::owners, KeepsSums::nodes}) {
              const auto overlap =
                  keeps == KeepsSums::owners ? comm::Overlap::no : comm::Overlap::yes;
              f(elements, Way{node_ranks, terms, blocks, keeps, bytes, overlap});
            }
          }
        }
      }
    }
  }

  const Index ranks = grid::world_group().size();
};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Reduction, Elements, );

TYPED_TEST(Reduction, IsTheTreeOverMicroBatchesRoundedOnceByAnyRoute) {
  using T = TypeParam;
  this->for_each_case([&](Index elements, const Way& way) {
    Case<T> c(elements, way);
    c.run(Result::reduce_scattered);
    const auto all = sum_of<T>(way.terms, way.blocks, c.layout.padded);
    const auto own = all.begin() + c.group.rank() * c.layout.shard;
    EXPECT_TRUE(tests::same_bits(c.out.host(), std::vector<T>(own, own + c.layout.shard)))
        << elements << " elements, " << name_of(way);
  });
}

TYPED_TEST(Reduction, EverywhereIsTheSameSum) {
  using T = TypeParam;
  for (const Index node_ranks : {1, 2}) {
    if (this->ranks % node_ranks != 0) continue;
    for (const Index bytes : {254, 1 << 20}) {
      const Way way{node_ranks, 2 * this->ranks, 4, KeepsSums::owners, bytes};
      Case<T> c(1000, way);
      c.run(Result::all_reduced);
      EXPECT_TRUE(
          tests::same_bits(c.unit.host(), sum_of<T>(way.terms, way.blocks, c.layout.padded)))
          << name_of(way);
      EXPECT_EQ(c.traffic.outside().size(), this->ranks == 1 ? 0U : 2U);
    }
  }
}

TYPED_TEST(Reduction, LeavesWhatWasSentAlone) {
  using T = TypeParam;
  Case<T> c(1000, {.terms = this->ranks});
  c.run(Result::reduce_scattered);
  EXPECT_TRUE(tests::same_bits(c.unit.host(),
                               values_of<T>(c.batches.number(c.group.rank(), 0), c.layout.padded)));
}

// A round sends as much as a ring, by any route. Sums of nodes leave a node once.
TYPED_TEST(Reduction, SendsAsMuchAsARingAndLessBetweenNodes) {
  using T = TypeParam;
  for (const Index node_ranks : {1, 2, 4}) {
    if (this->ranks % node_ranks != 0) continue;
    Case<T> c(4099, {.node_ranks = node_ranks, .terms = this->ranks, .blocks = this->ranks});
    c.run(Result::reduce_scattered);
    const Index nodes = this->ranks / node_ranks;
    for (const auto& [channel, volume] : c.traffic.outside()) {
      EXPECT_EQ(volume.elements, c.layout.padded / this->ranks * (this->ranks - 1));
      const Index width = c.plan.route() == Route::terms ? bytes_of(dtype_of<T>) : 4;
      if (c.plan.route() == Route::terms) {
        EXPECT_EQ(volume.bytes, volume.elements * bytes_of(dtype_of<T>));
      }
      EXPECT_EQ(volume.bytes_between_nodes, (nodes - 1) * c.layout.shard * width) << node_ranks;
    }
    EXPECT_EQ(c.traffic.outside().size(), this->ranks == 1 ? 0U : 1U);
  }
}

TEST(SumPlan, AddsInNodesWhatIsASubtree) {
  const auto route = [](Index ranks, Index nodes, Index terms, Index blocks, KeepsSums keeps) {
    return SumPlan({ranks, nodes, terms, blocks}, keeps).route();
  };
  using enum Route;
  for (const auto keeps : {KeepsSums::owners, KeepsSums::nodes}) {
    EXPECT_EQ(route(8, 1, 8, 4, keeps), terms) << "one node";
    EXPECT_EQ(route(8, 8, 8, 4, keeps), terms) << "a rank a node";
    EXPECT_EQ(route(8, 2, 8, 4, keeps), rounds);
    EXPECT_EQ(route(8, 4, 8, 4, keeps), rounds);
    EXPECT_EQ(route(8, 4, 8, 2, keeps), terms) << "a block spans two nodes";
    EXPECT_EQ(route(6, 2, 6, 2, keeps), rounds);
    EXPECT_EQ(route(6, 2, 6, 6, keeps), terms) << "three blocks a node";
    EXPECT_EQ(route(8, 2, 9, 9, keeps), rounds) << "a last round of one";
  }
  EXPECT_EQ(route(8, 2, 32, 4, KeepsSums::owners), terms) << "a block is longer than a round";
  EXPECT_EQ(route(8, 2, 32, 32, KeepsSums::owners), rounds);
  EXPECT_EQ(route(8, 2, 32, 4, KeepsSums::nodes), step);
  EXPECT_EQ(route(4, 4, 16, 4, KeepsSums::nodes), step);
  EXPECT_EQ(route(8, 8, 32, 4, KeepsSums::nodes), terms) << "a block spans two nodes";
  EXPECT_EQ(route(8, 2, 33, 33, KeepsSums::nodes), rounds) << "a round is not full";
}

TEST(SumPlan, KeepsAsManySumsAsAreOpenBetweenRounds) {
  const SumPlan chain({2, 1, 16, 1}, KeepsSums::owners);
  EXPECT_EQ(chain.owner_open(), 1);
  const SumPlan single({8, 1, 8, 8}, KeepsSums::owners);
  EXPECT_EQ(single.owner_open(), 0) << "one round";
  const SumPlan tree({2, 1, 16, 8}, KeepsSums::owners);
  EXPECT_EQ(tree.owner_open(), 3) << "after 7 blocks";
  const SumPlan nodes({8, 2, 32, 4}, KeepsSums::nodes);
  EXPECT_EQ(nodes.owner_open(), 0);
  EXPECT_EQ(nodes.node_open(), 2) << "one block, and half of the next";
  const SumPlan library({4, 2, 16, 2, true}, KeepsSums::nodes);
  EXPECT_EQ(library.route(), Route::terms);
  EXPECT_EQ(library.owner_open(), 2) << "four rounds of one term, in two blocks";
  EXPECT_EQ(library.owner_terms(1).first, 1);
}

TEST(BucketMemory, IsWhatTheDeckAllowsAndNoMoreThanALargestUnitFills) {
  const auto bytes = [](Index size, Dtype dtype, Index ranks, comm::Overlap overlap) {
    memory::Arenas measuring;
    static_cast<void>(
        zero::Bucket(measuring, size, dtype, one_unit_layout(1 << 20, ranks), overlap, {}));
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
  memory::Arenas measuring;
  const SumPlan plan({8, 2, 8, 8}, KeepsSums::owners);
  static_cast<void>(zero::Bucket(measuring, 1 << 20, Dtype::bf16, one_unit_layout(1 << 20, 8),
                                 comm::Overlap::yes, plan));
  EXPECT_EQ(plan.route(), Route::rounds);
  EXPECT_EQ(measuring.bytes()[position(memory::Category::buckets)], 1 << 20) << "with node sums";
}

}  // namespace
}  // namespace kzero::zero
