#include "zero/state_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kzero::zero {
namespace {

/// Vectors between hidden matrices, a unit without hidden matrices, and a unit of one hidden matrix
/// only.
param::Table table_with_matrices() {
  param::Table table{
      {"block", {{"a", {70}}, {"m", {30, 40}}, {"b", {3}}, {"n", {11, 90}}, {"c", {200}}}},
      {"embedding", {{"e", {50, 7}}}},
      {"matrix", {{"o", {40, 40}}}}};
  table[0].params[1].matrices = 2;
  table[0].params[3].matrices = table[2].params[0].matrices = 1;
  return table;
}

const param::StateArray all{"all"}, others{"others", param::Extent::all_but_matrices};

TEST(MaxHeld, IsTheMaximumOfAnyRank) {
  const param::Table table = table_with_matrices();
  for (const Index ranks : {1, 2, 3, 7, 40}) {
    const param::FlatLayout layout(table, ranks);
    for (std::size_t u = 0; u < table.size(); ++u) {
      const param::UnitLayout& unit = layout.units()[u];
      for (const param::StateArray& array : {all, others}) {
        for (const Placement placement : {Placement::replicated, Placement::partitioned}) {
          Index max = 0;
          for (Index rank = 0; rank < ranks; ++rank) {
            const Range own = held(placement, unit, rank);
            max = std::max(
                max, param::CompactRange(table[u], unit, array, own.begin, own.end).elements());
          }
          EXPECT_EQ(max_held(table[u], unit, array, placement), max) << ranks << ", " << u;
        }
      }
    }
  }
}

TEST(StateBuffer, HasTheSameSizeOnAllRanksAndAPlaceForEachElement) {
  const param::Table table = table_with_matrices();
  const Index ranks = 3;
  const param::FlatLayout layout(table, ranks);
  memory::Arenas first;
  const StateBuffer of_first(first, memory::Category::optimizer, table, layout, others,
                             {Placement::partitioned, 0});
  for (Index rank = 0; rank < ranks; ++rank) {
    memory::Arenas measured;
    const StateBuffer buffer(measured, memory::Category::optimizer, table, layout, others,
                             {Placement::partitioned, rank});
    EXPECT_EQ(measured.bytes(), first.bytes());
    EXPECT_EQ(buffer.elements(), of_first.elements());
    for (Index u = 0; u < 3; ++u) ASSERT_NE(buffer.range(u), nullptr);
    EXPECT_EQ(buffer.range(2)->elements(), 0);
  }
  memory::Arenas dense;
  const StateBuffer whole(dense, memory::Category::optimizer, table, layout, all,
                          {Placement::partitioned, 1});
  EXPECT_EQ(whole.elements(), layout.owned_total());
  EXPECT_EQ(whole.range(0), nullptr);
  EXPECT_FALSE(whole.is_elsewhere());
  EXPECT_TRUE(StateBuffer().is_elsewhere());
}

}  // namespace
}  // namespace kzero::zero
