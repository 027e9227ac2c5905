#include "probe/comparison.hpp"

#include <gtest/gtest.h>

#include "named_nodes.hpp"

namespace kzero::probe {
namespace {

using Names = std::vector<std::string>;
using Ranks = std::vector<int>;

Fact required(const std::string& name, const std::string& value) {
  return {name, value, Weight::required};
}

Names names_of(const Comparison& comparison) {
  Names names;
  for (const Difference& difference : comparison.differences) names.push_back(difference.name);
  return names;
}

TEST(Facts, survive_their_way_as_text) {
  const Facts facts{required("program", "kzero 1"),
                    {"variable OMP_NUM_THREADS", "a \"b\"\n\xc3\xa4"}};
  EXPECT_EQ(decode(encode(facts)), facts);
  EXPECT_NO_THROW(decode(encode({{"LD_PRELOAD", "\xff"}})));
}

TEST(Facts, know_the_program_and_what_bits_depend_on) {
  const Facts facts = all_facts({.threads = 3, .cores = 8, .arithmetic = "A", .bits = "B"});
  const auto value = [&](const std::string& name) {
    for (const Fact& fact : facts) {
      if (fact.name == name) return fact.value;
    }
    return std::string("missing");
  };
  EXPECT_NE(value("program").find("git "), std::string::npos);
  EXPECT_NE(value("MPI library"), "");
  EXPECT_EQ(value("arithmetic"), "A");
  EXPECT_EQ(value("bits of products"), "B");
  EXPECT_EQ(value("threads of a rank"), "3");
  EXPECT_NE(value("processor"), "missing");
  EXPECT_EQ(value("variable OMP_NUM_THREADS"), "1") << "as the tests set it";
  EXPECT_EQ(value("variable PMI_RANK"), "missing") << "each rank has its own";
}

TEST(Compare, finds_what_differs_and_who_is_alone_with_it) {
  const std::vector<Kind> kinds{
      {{0, 1, 3}, {required("program", "1"), {"variable A", "1"}, {"system", "Linux"}}},
      {{2}, {required("program", "2"), {"system", "Linux"}}}};
  const Comparison found = compare(kinds);
  EXPECT_EQ(found.same, Names{"system"});
  ASSERT_EQ(names_of(found), (Names{"program", "variable A"})) << "what is required first";
  EXPECT_EQ(found.differences[0].variants[0].ranks, (Ranks{0, 1, 3}));
  EXPECT_EQ(found.differences[0].variants[1].ranks, Ranks{2});
  EXPECT_EQ(found.differences[1].variants[1].value, "") << "a variable that is not set differs";
  EXPECT_FALSE(found.agrees());
  EXPECT_TRUE(compare({{{0, 1}, {{"system", "a"}}}, {{2}, {{"system", "b"}}}}).agrees());
  EXPECT_EQ(compare({{{0}, {{"a", "1"}}}, {{1}, {{"a", "2"}}}, {{2, 3}, {{"a", "1"}}}})
                .differences[0]
                .variants[0]
                .ranks,
            (Ranks{0, 2, 3}))
      << "of several kinds, in order";
}

TEST(Compare, a_library_that_is_not_loaded_is_no_other_version) {
  const Fact c{"library libc.so", "11"}, m{"library libm.so", "22"}, other{"library libm.so", "33"};
  EXPECT_EQ(compare({{{0}, {c, m}}, {{1}, {c}}}).same, Names{"libraries"});
  const Comparison found = compare({{{0}, {c, m}}, {{1}, {c, other}}});
  EXPECT_EQ(names_of(found), Names{"library libm.so"});
  EXPECT_TRUE(found.same.empty());
}

/// Only the last of several ranks has another value.
TEST(Compare, all_ranks_of_a_launch) {
  const grid::Group world = grid::world_group();
  const grid::Nodes nodes = named_nodes(world);
  const bool is_last = world.size() > 1 && world.rank() == world.size() - 1;
  const Facts facts{required("bits of products", is_last ? "b" : "a"), {"system", "Linux"}};
  const Comparison found = compare(world, facts);
  if (!world.is_root()) {
    EXPECT_TRUE(found.same.empty());
    return;
  }
  if (world.size() == 1) {
    EXPECT_TRUE(found.agrees() && found.differences.empty());
    return;
  }
  EXPECT_FALSE(found.agrees());
  EXPECT_EQ(found.kinds, 2);
  EXPECT_EQ(found.same, Names{"system"});
  ASSERT_EQ(names_of(found), Names{"bits of products"});
  const int last = world.size() - 1;
  const std::vector<Variant>& variants = found.differences[0].variants;
  if (world.size() > 2) {
    EXPECT_EQ(variants[1].ranks, Ranks{last});
  }
  const std::string line = describe(found.differences[0], nodes);
  EXPECT_NE(line.find("bits of products: "), std::string::npos) << line;
  EXPECT_NE(line.find(describe(Ranks{last}, nodes)), std::string::npos) << line;
}

TEST(Compare, asks_every_kind_of_ranks_that_all_differ) {
  const grid::Group world = grid::world_group();
  const Facts facts{required("program", "1"), {"GOMP_SPINCOUNT", std::to_string(world.rank())}};
  const Comparison found = compare(world, facts);
  if (!world.is_root()) return;
  EXPECT_EQ(found.kinds, world.size());
  EXPECT_EQ(found.compared, world.size());
  EXPECT_TRUE(found.agrees());
}

TEST(OneProgram, is_what_the_tests_run) {
  const grid::Group world = grid::world_group();
  EXPECT_NO_THROW(require_one_program(world, named_nodes(world)));
}

TEST(Place, is_named_by_its_nodes_where_all_their_ranks_are_meant) {
  const grid::Group world = grid::world_group();
  const grid::Nodes nodes = named_nodes(world);
  Ranks all;
  for (int rank = 0; rank < world.size(); ++rank) all.push_back(rank);
  if (nodes.count() == 1) {
    EXPECT_EQ(describe(all, nodes), "host0");
  }
  if (nodes.count() == 1 && world.size() > 1) {
    EXPECT_EQ(describe(Ranks{1}, nodes), "rank 1 on host0");
  }
  if (nodes.count() == 1 && world.size() > 2) {
    EXPECT_EQ(describe(Ranks{1, 2}, nodes), "2 ranks on host0, first 1");
  }
  if (nodes.count() == 2) {
    EXPECT_EQ(describe(all, nodes), "host0 and host1");
  }
  if (nodes.count() == 4) {
    EXPECT_EQ(describe(all, nodes), "4 nodes, first host0");
  }
}

}  // namespace
}  // namespace kzero::probe
