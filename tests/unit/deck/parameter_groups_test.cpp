#include "deck/rules.hpp"

#include <gtest/gtest.h>

namespace kzero::deck {
namespace {

const std::vector<std::string> names{"wte.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.weight",
                                     "h.0.attn.c_attn.bias"};

TEST(ParameterGroups, TheFirstPatternThatMatchesDecides) {
  const std::vector<OptimizerGroup> groups{{"*.bias"}, {"h.?.attn.*"}, {"wte.weight"}};
  EXPECT_EQ(group_of(groups, names[0]), 2);
  EXPECT_EQ(group_of(groups, names[1]), -1);
  EXPECT_EQ(group_of(groups, names[2]), 1);
  EXPECT_EQ(group_of(groups, names[3]), 0);
  EXPECT_EQ(group_of(groups, "wte.weight.more"), -1) << "a pattern covers the entire name";
  EXPECT_EQ(group_of({}, names[0]), -1);
}

TEST(ParameterGroups, EachNeedsAParameterOfItsOwn) {
  const std::vector<OptimizerGroup> groups{{"*attn*"}, {"*embed*"}, {"*c_attn.bias"}, {"*"}};
  EXPECT_EQ(empty_groups(groups, names),
            (std::vector<std::string>{"", "matches no parameter of the model",
                                      "matches only parameters of earlier groups, such as "
                                      "h.0.attn.c_attn.bias of optimizer.group[0]",
                                      ""}));
}

}  // namespace
}  // namespace kzero::deck
