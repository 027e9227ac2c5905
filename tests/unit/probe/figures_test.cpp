// Finds odd places in made-up figures of the tests' ranks and nodes.
#include "probe/figures.hpp"

#include <gtest/gtest.h>

#include "named_nodes.hpp"
#include "probe/report.hpp"

namespace kzero::probe {
namespace {

/// Good figures of all ranks and links. Tests make them worse.
struct Case {
  grid::Group world = grid::world_group();
  grid::Nodes nodes = named_nodes(world);
  Figures figures;
  std::vector<WallClock> clocks;

  Case() {
    figures.ranks.assign(static_cast<std::size_t>(world.size()), {4e10, 1e10});
    for (int node = 0; node < nodes.count(); ++node) {
      clocks.push_back({0.01 * node, 1e-4});
      for (int other = node + 1; other < nodes.count(); ++other)
        figures.between.push_back({node, other, {30e-6, 0.12e9}});
      for (std::size_t i = 1; i < nodes.ranks(node).size(); ++i)
        figures.within.push_back({nodes.ranks(node)[i - 1], nodes.ranks(node)[i], {1e-6, 5e9}});
    }
  }

  std::vector<Finding> odd() {
    summarize(figures, nodes, clocks);
    return find_odd(figures, nodes);
  }

  /// Makes all links of a node slower by a factor.
  void slow_links(int node, double factor) {
    for (MeasuredLink& link : figures.between) {
      if (link.one == node || link.other == node) link.link.bytes_per_second /= factor;
    }
  }
};

TEST(FindOdd, names_nobody_of_equals) {
  Case equals;
  EXPECT_TRUE(equals.odd().empty());
}

TEST(FindOdd, names_the_slow_rank_of_a_single_node) {
  Case one;
  if (one.nodes.count() > 1 || one.world.size() < 2) GTEST_SKIP() << "for a node of several ranks";
  one.figures.ranks[1].operations /= 4;
  const auto found = one.odd();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_EQ(describe_place(found[0], one.nodes), "rank 1 on host0");
  EXPECT_EQ(describe_reasons(found[0]), "products 4 times slower (0.01 Tflop/s, typical 0.04)");
}

TEST(FindOdd, names_the_node_with_a_slow_rank) {
  Case several;
  if (several.nodes.count() < 2) GTEST_SKIP() << "for several nodes";
  const int last = several.world.size() - 1;
  several.figures.ranks[last] = {1e10, 1e9};
  const auto found = several.odd();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].nodes, std::vector<int>{several.nodes.of(last)});
  EXPECT_EQ(found[0].rank, last);
  ASSERT_EQ(found[0].weaknesses.size(), 2U);
  EXPECT_NEAR(found[0].weaknesses[0].factor, 4, 1e-12);
  EXPECT_NEAR(found[0].weaknesses[1].factor, 10, 1e-12);
  EXPECT_EQ(describe_place(found[0], several.nodes), several.nodes.name(several.nodes.of(last)));
}

/// Each link has two ends. The slow end is the node whose links are all slow.
TEST(FindOdd, names_the_slow_end_of_links) {
  Case several;
  if (several.nodes.count() < 3) GTEST_SKIP() << "for nodes with several links";
  several.slow_links(2, 9);
  const auto found = several.odd();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].nodes, std::vector<int>{2});
  ASSERT_EQ(found[0].weaknesses.size(), 1U);
  EXPECT_EQ(found[0].weaknesses[0].what, "messages to other nodes");
  EXPECT_NEAR(found[0].weaknesses[0].factor, 9, 1e-12);
}

TEST(FindOdd, names_a_slow_link_between_good_nodes) {
  Case several;
  if (several.nodes.count() < 3) GTEST_SKIP() << "for nodes with several links";
  several.figures.between[1].link.bytes_per_second /= 5;  // between nodes 0 and 2
  const auto found = several.odd();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(describe_place(found[0], several.nodes), "the link of host0 and host2");
}

/// A single link does not identify which of its ends is slow.
TEST(FindOdd, names_neither_of_two_nodes_for_their_link) {
  Case two;
  if (two.nodes.count() != 2) GTEST_SKIP() << "for two nodes";
  two.slow_links(1, 100);
  EXPECT_TRUE(two.odd().empty());
}

TEST(FindOdd, names_late_messages_within_a_node) {
  Case two;
  if (two.figures.within.size() < 2 || two.nodes.count() < 2) GTEST_SKIP() << "for ranks on nodes";
  two.figures.within[1].link = {1e-5, 1e9};
  const auto found = two.odd();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].nodes, std::vector<int>{1});
  EXPECT_EQ(found[0].weaknesses.size(), 2U);
}

TEST(FindOdd, names_a_wrong_clock_even_if_all_are_measured_against_it) {
  Case several;
  if (several.nodes.count() < 3) GTEST_SKIP() << "for a majority of clocks";
  for (std::size_t node = 1; node < several.clocks.size(); ++node) several.clocks[node].ahead = -5;
  const auto found = several.odd();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].nodes, std::vector<int>{0});
  EXPECT_EQ(describe_reasons(found[0]), "its clock is 5 s ahead of the others'");
}

/// The survey of good figures, as measured by all ranks.
Survey good_survey(Case& measured) {
  Survey survey;
  survey.ranks = measured.world.size();
  survey.comparison.same = {"program"};
  survey.findings = measured.odd();
  survey.figures = measured.figures;
  return survey;
}

TEST(Report, ends_with_the_verdict) {
  Case measured;
  Survey survey = good_survey(measured);
  const auto last_line = [&] {
    const std::string all = text(survey, measured.nodes);
    return all.substr(all.rfind('\n', all.size() - 2) + 1);
  };
  if (survey.ranks == 1) {
    EXPECT_EQ(last_line(), "verdict     good: there is one rank, so there is nothing to compare\n");
  } else {
    EXPECT_EQ(last_line().find("verdict     good: "), 0U) << last_line();
  }
  survey.ranks = 4;
  survey.comparison.differences = {{"system", Weight::advisory, {{"a", {0}}, {"b", {0}}}}};
  EXPECT_EQ(last_line(), "verdict     can run, but the ranks differ in system\n");
  survey.findings = {{{0}, 0, {{"products", "Tflop/s", 1, 2, 2}}}};
  EXPECT_EQ(last_line().find("verdict     can run, but look at "), 0U) << last_line();
  survey.comparison.differences.insert(survey.comparison.differences.begin(),
                                       {"program", Weight::required, {{"a", {0}}, {"b", {0}}}});
  EXPECT_EQ(last_line(), "verdict     not one run: the ranks differ in program\n");
}

TEST(Report, shows_each_node_and_what_was_not_measured) {
  Case measured;
  const Survey survey = good_survey(measured);
  const std::string all = text(survey, measured.nodes);
  for (int node = 0; node < measured.nodes.count(); ++node)
    EXPECT_NE(all.find('\n' + measured.nodes.name(node) + ' '), std::string::npos) << all;
  EXPECT_EQ(all.find("\nmedian") == std::string::npos, measured.nodes.count() == 1) << all;
  EXPECT_NE(all.find("0.04"), std::string::npos) << all;
  if (measured.nodes.count() == 1) {
    EXPECT_NE(all.find('-'), std::string::npos) << "no links between nodes: " << all;
  }
}

TEST(Report, of_many_nodes_shows_the_odd_ones_and_what_is_typical) {
  Case measured;
  if (measured.nodes.count() < 4) GTEST_SKIP() << "for several nodes";
  measured.figures.ranks[2].operations = 1e9;
  const std::string all = text(good_survey(measured), measured.nodes, 3);
  EXPECT_EQ(all.find("\nhost1 "), std::string::npos) << all;
  for (const char* start : {"\nhost2 ", "\nmedian ", "\nbest ", "\nworst "})
    EXPECT_NE(all.find(start), std::string::npos) << all;
}

}  // namespace
}  // namespace kzero::probe
