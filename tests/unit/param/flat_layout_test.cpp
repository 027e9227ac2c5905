#include "param/flat_layout.hpp"

#include <gtest/gtest.h>

namespace kzero::param {
namespace {

ParamSpec vector(const std::string& name, Index length) { return {name, {length}}; }

Table table() {
  return {{"first", {{"a", {3, 7}}, vector("b", 5)}},
          {"second", {vector("c", 1)}},
          {"third", {{"d", {11, 13}}, vector("e", 64), vector("f", 2)}}};
}

TEST(FlatLayout, UnitsArePaddedToTheRanksAndSplitIntoEqualShards) {
  for (const Index ranks : {1, 2, 3, 4, 7, 64}) {
    const FlatLayout layout(table(), ranks);
    ASSERT_EQ(layout.units().size(), 3U);
    Index padded = 0, end = 0;
    for (std::size_t u = 0; u < 3; ++u) {
      const UnitLayout& unit = layout.units()[u];
      EXPECT_EQ(unit.elements, table()[u].elements());
      EXPECT_EQ(unit.shard * ranks, unit.padded);
      EXPECT_GE(unit.padded, unit.elements);
      EXPECT_EQ(unit.shard % shard_alignment, 0);
      EXPECT_LT(unit.padded, unit.elements + ranks * shard_alignment);
      EXPECT_EQ(unit.begin, end) << "units follow one another";
      EXPECT_EQ(unit.begin % 32, 0) << "a unit begins on a cache line in 16 bits";
      end = unit.begin + unit.padded;
      padded += unit.padded;
    }
    EXPECT_EQ(layout.total(), padded);
    EXPECT_EQ(layout.owned_total() * ranks, padded);
    EXPECT_EQ(layout.ranks(), ranks);
  }
}

TEST(FlatLayout, HasRoomForZerosAfterTheParameters) {
  for (const Index ranks : {1, 2, 3, 64}) {
    for (const Index zeros : {1, 38, 39, 1000}) {
      Table more = table();
      more[0].zeros = zeros;
      const FlatLayout layout(more, ranks), without(table(), ranks);
      const UnitLayout& unit = layout.unit(0);
      EXPECT_EQ(unit.elements, 26);
      EXPECT_GE(unit.padded, 26 + zeros);
      EXPECT_LT(unit.padded, 26 + zeros + ranks * shard_alignment);
      EXPECT_EQ(layout.unit(1).begin, unit.padded);
      EXPECT_EQ(layout.unit(2).padded, without.unit(2).padded);
    }
  }
}

TEST(TrainedUnits, HaveNoRoomWhereTheyAreFrozen) {
  Table frozen = table();
  frozen[0].zeros = 1000;
  frozen[0].trains = false;
  EXPECT_EQ(FlatLayout(trained_of(frozen), 1).unit(0).padded, 0);
}

TEST(FlatLayout, ParametersLieOneAfterTheOther) {
  const FlatLayout layout(table(), 4);
  EXPECT_EQ(layout.unit(0).offsets, (std::vector<Index>{0, 21}));
  EXPECT_EQ(layout.unit(2).offsets, (std::vector<Index>{0, 143, 207}));
}

TEST(Parts, OfTheRanksCoverEveryElementOnceAndNoPadding) {
  for (const Index ranks : {1, 2, 3, 4, 7, 300}) {
    const FlatLayout layout(table(), ranks);
    for (std::size_t u = 0; u < 3; ++u) {
      const UnitSpec spec = table()[u];
      const UnitLayout& unit = layout.units()[u];
      std::vector<std::vector<int>> seen;
      for (const ParamSpec& p : spec.params) seen.emplace_back(p.elements(), 0);
      for (Index r = 0; r < ranks; ++r) {
        for (const Part& part : parts(spec, unit, r * unit.shard, (r + 1) * unit.shard)) {
          EXPECT_GT(part.count, 0);
          EXPECT_EQ(part.in_unit, unit.offsets[part.param] + part.in_param);
          EXPECT_GE(part.in_unit, r * unit.shard);
          EXPECT_LE(part.in_unit + part.count, (r + 1) * unit.shard);
          for (Index i = 0; i < part.count; ++i) ++seen[part.param].at(part.in_param + i);
        }
      }
      for (const auto& counts : seen) EXPECT_EQ(counts, std::vector<int>(counts.size(), 1));
    }
  }
}

TEST(Parts, OfAnEmptyRangeAreNone) {
  const FlatLayout layout(table(), 2);
  EXPECT_TRUE(parts(table()[0], layout.unit(0), 4, 4).empty());
  EXPECT_TRUE(parts(table()[0], layout.unit(0), 26, 28).empty());
}

TEST(CompactRange, LeavesOutWhatTheArrayDoesNotExtendTo) {
  Table matrices = table();
  matrices[0].params[0].matrices = 1;
  matrices[2].params[0].matrices = 13;
  const StateArray all{"all"}, others{"others", Extent::all_but_matrices};
  for (const Index ranks : {1, 2, 3, 7}) {
    const FlatLayout layout(matrices, ranks);
    for (std::size_t u = 0; u < 3; ++u) {
      const UnitLayout& unit = layout.units()[u];
      for (Index r = 0; r < ranks; ++r) {
        const Index begin = r * unit.shard, end = (r + 1) * unit.shard;
        const CompactRange whole(matrices[u], unit, all, begin, end),
            part(matrices[u], unit, others, begin, end);
        Index next_of_all = 0, next = 0;
        for (Index i = begin; i < end; ++i) {
          const bool is_padding = i >= unit.elements;
          const bool is_matrix = u != 1 && i < (u == 0 ? 21 : 143);
          EXPECT_EQ(whole.position(i - begin), is_padding ? -1 : next_of_all++);
          EXPECT_EQ(part.position(i - begin), is_padding || is_matrix ? -1 : next++);
        }
        EXPECT_EQ(whole.elements(), next_of_all);
        EXPECT_EQ(part.elements(), next);
      }
    }
  }
}

TEST(StateArrays, AreNamedWithWhatTheyLeaveOut) {
  EXPECT_EQ(names_of({{"master"}, {"v", Extent::all_but_matrices}}),
            "master, v (not of hidden matrices)");
  EXPECT_FALSE((StateArray{"v"} == StateArray{"v", Extent::all_but_matrices}));
}

TEST(Spec, CountsElements) {
  EXPECT_EQ(table()[2].elements(), 11 * 13 + 64 + 2);
  EXPECT_EQ(elements_of(table()), 26 + 1 + 209);
}

}  // namespace
}  // namespace kzero::param
