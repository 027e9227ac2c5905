// The rates of parameters in groups.
#include <gtest/gtest.h>

#include <tuple>

#include "optim/optimizer.hpp"
#include "optim/place.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"
#include "support/same_bits.hpp"

namespace kzero::optim {
namespace {

using tests::Guarded;
using tests::numbers;

constexpr Index group_rows = 109, group_count = 7 * group_rows + 5;
constexpr Update group_step{0.01, 3, 0.5};

/// A matrix, which decays, before a vector, which does not, in these groups.
param::Table grouped_table(Index of_matrix, Index of_vector) {
  param::Table table{{"unit",
                      {{"matrix", {group_rows, 7}, param::Init::normal, 1, true},
                       {"vector", {5}, param::Init::zeros, 0, false}}}};
  table[0].params[0].group = of_matrix;
  table[0].params[1].group = of_vector;
  return table;
}

// The rate of a wide matrix is smaller, but it decays as a narrow one.
TEST(Groups, MultiplyWithTheFactorOfTheWidth) {
  deck::Optimizer deck;
  deck.weight_decay = 0.25;
  deck.groups = {{"a", 0.5, 0.125}};
  for (const auto& [group, lr, decay] :
       {std::tuple<Index, double, double>{-1, 0.25, 1}, {0, 0.125, 0.5}}) {
    param::ParamSpec matrix = grouped_table(group, group)[0].params[0];
    matrix.lr_scale = 0.25;
    const ParameterRates rates = rates_of(deck, matrix);
    EXPECT_EQ(rates.lr_scale, lr);
    EXPECT_EQ(rates.weight_decay, decay);
  }
}

TEST(Groups, SetTheRatesOfTheirParameters) {
  deck::Optimizer deck;
  deck.weight_decay = 0.25;
  deck.groups = {{"a", 0.5, 0.125}, {"b", 2, -1}, {"c", 1, 0}};
  const auto of = [&](Index group, bool is_matrix) {
    const auto rates = rates_of(deck, grouped_table(group, group)[0].params[is_matrix ? 0 : 1]);
    return std::pair(rates.lr_scale, rates.weight_decay);
  };
  EXPECT_EQ(of(-1, true), std::pair(1.0, 0.25));
  EXPECT_EQ(of(-1, false), std::pair(1.0, 0.0));
  EXPECT_EQ(of(0, true), std::pair(0.5, 0.125));
  EXPECT_EQ(of(0, false), std::pair(0.5, 0.125)) << "also of vectors, as the group says so";
  EXPECT_EQ(of(1, true), std::pair(2.0, 0.25));
  EXPECT_EQ(of(1, false), std::pair(2.0, 0.0));
  EXPECT_EQ(of(2, true), std::pair(1.0, 0.0));
}

/// Weights and other state after one update.
std::vector<std::vector<float>> updated(const deck::Optimizer& deck, const param::Table& table,
                                        double lr) {
  const param::FlatLayout layout(table, 1);
  const auto optimizer = make_optimizer(deck);
  const Guarded<float> master(numbers<float>(group_count, 1)),
      first(numbers<float>(group_count, 2, 0.1)), second(std::vector<float>(group_count, 0.5F)),
      gradient(numbers<float>(group_count, 3));
  State state{master.data()};
  for (std::size_t a = 1; a < optimizer->state().size(); ++a)
    state.add(a == 1 ? first.data() : second.data());
  Update update = group_step;
  update.lr = lr;
  const Share<float> share{&table[0],       layout.units().data(), 0,    group_count,
                           gradient.data(), master.data(),         state};
  optimizer->update({}, update, share);
  return {master.host(), first.host(), second.host()};
}

// The rules without groups are compared with plain loops elsewhere.
TEST(Groups, GiveAParameterTheUpdateOfADeckWithItsRates) {
  for (const auto kind :
       {deck::OptimizerKind::adamw, deck::OptimizerKind::sgd, deck::OptimizerKind::lion}) {
    deck::Optimizer grouped;
    grouped.kind = kind, grouped.weight_decay = 0.25;
    deck::Optimizer of_matrix = grouped, of_vector = grouped;
    grouped.groups = {{"m", 0.5, 0.125}, {"v", 3, -1}};
    of_matrix.weight_decay = 0.125;
    const auto found = updated(grouped, grouped_table(0, 1), 0.01);
    const auto expected_matrix = updated(of_matrix, grouped_table(-1, -1), 0.01 * 0.5);
    const auto expected_vector = updated(of_vector, grouped_table(-1, -1), 0.01 * 3);
    for (std::size_t a = 0; a < found.size(); ++a) {
      auto expected = expected_matrix[a];
      std::copy(expected_vector[a].begin() + 7 * group_rows, expected_vector[a].end(),
                expected.begin() + 7 * group_rows);
      EXPECT_TRUE(tests::same_bits(found[a], expected)) << static_cast<int>(kind) << ' ' << a;
    }
  }
}

TEST(Groups, WithARateOfZeroKeepTheirWeights) {
  for (const auto kind :
       {deck::OptimizerKind::adamw, deck::OptimizerKind::sgd, deck::OptimizerKind::lion}) {
    deck::Optimizer grouped;
    grouped.kind = kind;
    grouped.groups = {{"m", 0, 0.5}};
    const auto found = updated(grouped, grouped_table(0, -1), 0.01);
    const auto before = numbers<float>(group_count, 1);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + 7 * group_rows, found[0].begin()));
    EXPECT_NE(found[0].back(), before.back());
    EXPECT_NE(found[1].front(), (numbers<float>(group_count, 2, 0.1).front()))
        << "the state is still updated";
  }
}

}  // namespace
}  // namespace kzero::optim
