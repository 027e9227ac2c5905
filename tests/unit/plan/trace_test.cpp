#include "plan/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "comm/placement.hpp"
#include "deck/rules.hpp"
#include "tensor/view.hpp"

namespace kzero::plan {
namespace {

/// The trace of a deck with one block on nodes of `node` ranks, or on one. Runs of blanks are
/// collapsed.
std::string trace_of(deck::Zero zero, Index ranks, Index node = 0) {
  deck::Config config;
  config.model.layers = 1, config.model.hidden = 8, config.model.heads = 2;
  config.train.global_batch = ranks;
  config.zero = zero;
  config.run.communicator = deck::CommunicatorKind::mpi;
  config.grid.node = node;
  deck::resolve(config, {.ranks = ranks, .purpose = deck::Purpose::plan});
  config.placement = comm::placement_on({}, config, ranks);
  std::string text = trace(config, engine::Blueprint(config, ranks));
  const auto both_blank = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), both_blank), text.end());
  return text;
}

TEST(Trace, OfStage3SaysWhatIsGatheredAndWhatMovesBesideIt) {
  EXPECT_EQ(trace_of({.stage = 3, .prefetch_units = 1, .overlap = deck::Overlap::on}, 2, 1),
            "schedule of a micro-batch (2 a step, in turns), 2 data-parallel ranks, ZeRO stage 3, "
            "prefetch_units 1, overlap on\n"
            "P, G: parameters and gradient of a unit (0 embedding, 1 block 0, 2 head); other "
            "names: activations; .n: version\n"
            " op pass unit reads writes after gathers releases reduces may overlap\n"
            " 0 forward 0 P0 x0 - P0 P1 - - gather P1\n"
            " 1 forward 1 P1 x0 x1 saved0 0 P2 - - gather P2\n"
            " 2 loss 2 P0 P2 x1 loss dx G0.1 G2.1 1 - P0 P2 G2 -\n"
            " 3 backward 1 P1 x0 saved0 dx dx.1 G1.1 0 1 2 - P1 G1 reduce G2\n"
            " 4 backward 0 dx.1 G0.1 G0.2 2 3 - - G0 reduce G1\n"
            "ranks meet: in every gather before its operation needs it, and in every reduction\n"
            "once a step, all ranks: sum of the losses; sum of the squared gradients; each rank "
            "updates its shards; agreement on whether to stop\n");
}

TEST(Trace, OfSharedParametersGathersNothing) {
  if (!tensor::on_host) GTEST_SKIP() << "devices do not share memory";
  const std::string one_node = trace_of({.stage = 3, .prefetch_units = 1}, 2);
  EXPECT_NE(one_node.find("0 forward 0 P0 x0 - - - - -"), std::string::npos) << one_node;
  EXPECT_NE(one_node.find("each rank updates its shards; the ranks of a node wait until all their "
                          "shared parameters are new; agreement"),
            std::string::npos)
      << one_node;
  const std::string two_nodes =
      trace_of({.stage = 3, .parameters = deck::SharesParameters::node}, 4, 2);
  EXPECT_EQ(two_nodes.find("P0 P1"), std::string::npos) << two_nodes;
  EXPECT_NE(two_nodes.find("updated parameters are gathered"), std::string::npos) << two_nodes;
  EXPECT_NE(two_nodes.find("the ranks of a node wait"), std::string::npos) << two_nodes;
}

TEST(Trace, NamesTheFirstUnitsAndTheLast) {
  deck::Config config;
  config.model.layers = 3;
  config.train.global_batch = 1;
  deck::resolve(config, {.ranks = 1, .purpose = deck::Purpose::plan});
  const std::string text = trace(config, engine::Blueprint(config, 1));
  EXPECT_NE(text.find("(0 embedding, 1 block 0, 2 block 1, ..., 4 head)"), std::string::npos)
      << text;
}

TEST(Trace, OfOtherStagesGathersAfterTheUpdateOrNotAtAll) {
  const std::string first = trace_of({.stage = 1, .overlap = deck::Overlap::off}, 4);
  EXPECT_NE(first.find("0 forward 0 P0 x0 - - - - -"), std::string::npos) << first;
  EXPECT_NE(first.find("updated parameters are gathered before the next is updated;"),
            std::string::npos)
      << first;
  const std::string overlaps = trace_of({.stage = 1, .overlap = deck::Overlap::on}, 4);
  EXPECT_NE(overlaps.find("updated parameters are gathered while the next is updated;"),
            std::string::npos)
      << overlaps;
  const std::string none = trace_of({.stage = 0}, 4);
  EXPECT_NE(none.find("every rank updates all parameters"), std::string::npos) << none;
  const std::string alone = trace_of({.stage = 3}, 1);
  EXPECT_NE(alone.find("nothing is gathered or reduced"), std::string::npos) << alone;
}

}  // namespace
}  // namespace kzero::plan
