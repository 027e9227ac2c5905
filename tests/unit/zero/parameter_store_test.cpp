// Parameters that the ranks of a node share: complete units without messages, and updates in order.
#include "zero/parameter_store.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "comm/backends.hpp"
#include "comm/node_window.hpp"
#include "grid/process_grid.hpp"

namespace kzero::zero {
namespace {

constexpr auto category = memory::Category::parameters;

param::Table table() {
  return {{"first", {{"a", {50, 10}}}}, {"block", {{"b", {100}}}}, {"last", {{"c", {7}}}}};
}

std::vector<int> nodes_of(int ranks, int node_ranks) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / node_ranks);
  return nodes;
}

int world_ranks() { return grid::world_group().size(); }

float value(Index version, Index unit, Index element) {
  return static_cast<float>(version * 10000 + unit * 1000 + element);
}

/// A store with a copy on each node of `node_ranks` ranks.
class Shared {
 public:
  explicit Shared(int node_ranks)
      : grid(0, 1, nodes_of(world_ranks(), node_ranks)),
        comm(comm::make_communicator(comm::CommunicatorKind::automatic, comm::Overlap::no,
                                     grid.data(), traffic)),
        layout(table(), grid.data().size()),
        stage(zero::stage(3, layout.ranks(), grid.data().shape().nodes, true)),
        measured(memory::measured(
            [&](memory::Arenas& all) { ParameterStore<float>(all, layout, stage, 0, 0); })),
        window(grid.node(), measured.shared_bytes(), ""),
        arenas(measured, ledger, &window),
        store(arenas, layout, stage, 0, grid.data().rank()) {
    store.clear(exec);
    store.finish_update(exec, *comm);
  }

  /// Writes this rank's shards and gathers those of other nodes.
  void update(Index version) {
    const Index rank = grid.data().rank();
    for (Index u = 0; u < std::ssize(layout.units()); ++u) {
      const Range own = held(Placement::partitioned, layout.unit(u), rank);
      float* const shard = store.share(u, Placement::partitioned);
      for (Index i = own.begin; i < own.end; ++i) shard[i - own.begin] = value(version, u, i);
      if (stage.gathers_updates()) store.all_gather_updated(u, exec, *comm);
    }
    store.finish_update(exec, *comm);
  }

  void expect_all(Index version) const {
    for (Index u = 0; u < std::ssize(layout.units()); ++u) {
      const param::UnitLayout& unit = layout.unit(u);
      Index wrong = 0;
      for (Index i = 0; i < unit.padded; ++i)
        wrong += store.units()[u][i] == (i < unit.elements ? value(version, u, i) : 0) ? 0 : 1;
      EXPECT_EQ(wrong, 0) << "unit " << u << " of version " << version;
    }
  }

  const tensor::Execution exec;
  const grid::ProcessGrid grid;
  comm::Traffic traffic;
  std::unique_ptr<comm::Communicator> comm;
  const param::FlatLayout layout;
  const Stage stage;
  memory::Ledger ledger;
  const memory::Arenas measured;
  const comm::NodeWindow window;
  memory::Arenas arenas;
  ParameterStore<float> store;
};

template <class Check>
void on_all_nodes(const Check& check) {
  if (!tensor::on_host) GTEST_SKIP() << "devices do not share memory";
  const int ranks = world_ranks();
  for (int node_ranks = 2; node_ranks <= ranks; ++node_ranks) {
    if (ranks % node_ranks != 0) continue;
    Shared shared(node_ranks);
    check(shared, node_ranks);
  }
}

// A rank that is late writes its shards last, and no other rank reads before.
TEST(SharedParameters, AreCompleteAfterEachUpdate) {
  on_all_nodes([](Shared& shared, int) {
    for (Index version = 1; version <= 4; ++version) {
      if (version % shared.layout.ranks() == shared.grid.data().rank())
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      shared.update(version);
      shared.expect_all(version);
      shared.grid.data().barrier();  // ends reading, as a step's totals do
    }
  });
}

TEST(SharedParameters, CountOnceOnEachNode) {
  on_all_nodes([](Shared& shared, int node_ranks) {
    const Index all = shared.layout.total() * static_cast<Index>(sizeof(float));
    EXPECT_EQ(shared.ledger.now(category) * node_ranks, all);
    EXPECT_EQ(shared.measured.bytes()[position(category)], shared.ledger.now(category));
    EXPECT_EQ(shared.measured.shared_bytes(), all);
  });
}

TEST(SharedParameters, AreSentBetweenNodesOnly) {
  on_all_nodes([](Shared& shared, int) {
    shared.traffic.reset();
    shared.update(1);
    const Index others = shared.grid.data().shape().nodes - 1;
    Index bytes = 0, between = 0;
    for (const auto& [channel, volume] : shared.traffic.outside())
      bytes += volume.bytes, between += volume.bytes_between_nodes;
    EXPECT_EQ(bytes, others * shared.layout.owned_total() * static_cast<Index>(sizeof(float)));
    EXPECT_EQ(between, bytes);
  });
}

// Operations find all units where they were, and nothing is sent for them.
TEST(SharedParameters, AreNeverGathered) {
  on_all_nodes([](Shared& shared, int) {
    shared.update(1);
    shared.traffic.reset();
    const param::Trace trace{
        {param::Pass::forward, 0, {{param::ValueKind::parameters, 0, {}, 0}}, {}},
        {param::Pass::forward, 1, {{param::ValueKind::parameters, 1, {}, 0}}, {}},
        {param::Pass::loss, 2, {{param::ValueKind::parameters, 2, {}, 0}}, {}}};
    const Schedule schedule(trace, shared.layout, {.stage = shared.stage});
    const auto units = shared.store.units();
    Index operations = 0;
    shared.store.run(schedule, shared.exec, *shared.comm,
                     [&](const param::Operation&, const ScheduleStep&) {
                       EXPECT_EQ(shared.store.units(), units);
                       shared.expect_all(1);
                       ++operations;
                     });
    EXPECT_EQ(operations, 3);
    EXPECT_TRUE(shared.traffic.outside().empty());
  });
}

}  // namespace
}  // namespace kzero::zero
