// The size that the search calls the largest fits. The next larger size does not.
#include "plan/fit.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "deck/rules.hpp"
#include "plan/report.hpp"
#include "plan/search.hpp"
#include "tensor/gemm.hpp"

namespace kzero::plan {
namespace {

constexpr Index fit_ranks = 2;

deck::Config deck() {
  deck::Config config;
  config.model.hidden = 60, config.model.heads = 3, config.model.layers = 5;
  config.train.global_batch = 48, config.train.micro_batch = 4;
  deck::resolve(config, {.ranks = fit_ranks});
  return config;
}

deck::Config with(const Answer& answer) {
  deck::Config config = deck();
  config.zero.stage = answer.entry.stage;
  config.recompute = answer.entry.recompute;
  config.train.micro_batch = answer.entry.micro_batch;
  config.model.layers = answer.entry.layers;
  config.model.sequence = answer.entry.sequence;
  return config;
}

Index bytes_of(const deck::Config& config) { return plan(config, 1).device_bytes(); }

TEST(Largest, IsTheLastThatFits) {
  for (Index bound = 0; bound < 70; ++bound) {
    EXPECT_EQ(largest([&](Index n) { return n <= bound; }), bound);
  }
}

TEST(Largest, NeedsFewLoadsOfAStraightLine) {
  int calls = 0;
  const auto line = [&](Index bound) {
    return largest_by_load([&calls, bound](Index n) {
      ++calls;
      return (100 + static_cast<double>(n)) / (100 + static_cast<double>(bound));
    });
  };
  for (Index bound = 0; bound < 70; ++bound) EXPECT_EQ(line(bound), bound);
  calls = 0;
  EXPECT_EQ(line(9'999), 9'999);
  EXPECT_LE(calls, 10);
}

TEST(Largest, FollowsCurvesAndRefusals) {
  for (const Index bound : {1, 2, 3, 50, 1000, 12345}) {
    const auto limit = static_cast<double>(bound);
    EXPECT_EQ(largest_by_load([&](Index n) { return std::pow(static_cast<double>(n) / limit, 2); }),
              bound);
    EXPECT_EQ(largest_by_load([&](Index n) { return std::sqrt(static_cast<double>(n) / limit); }),
              bound);
    EXPECT_EQ(largest_by_load([&](Index n) { return n > bound ? INFINITY : 0.1; }), bound);
  }
}

/// Budgets from less than a layer to more than the full batch, including the exact bytes of some
/// models and one byte less.
std::vector<Index> budgets() {
  std::vector<Index> all;
  for (const Index layers : {1, 2, 7}) {
    deck::Config config = deck();
    config.model.layers = layers;
    all.insert(all.end(), {bytes_of(config) - 1, bytes_of(config)});
  }
  for (Index bytes = 100'000; bytes < 300'000'000; bytes = bytes * 3 / 2) all.push_back(bytes);
  return all;
}

TEST(Fit, ReplanningShowsThatItFitsAndOneMoreDoesNot) {
  std::set<Index> micro_batches, layers;
  for (const Index bytes : budgets()) {
    for (const Answer& answer : fit(deck(), fit_ranks, 1, bytes).answers) {
      deck::Config config = with(answer);
      EXPECT_EQ(bytes_of(config), answer.entry.device_bytes());
      EXPECT_LE(bytes_of(config), bytes);
      if (answer.search == Search::layers) {
        EXPECT_EQ(config.train.micro_batch, 4);
        layers.insert(config.model.layers);
        ++config.model.layers;
        const bool is_allowed = config.model.layers <= 10000;
        EXPECT_TRUE(!is_allowed || bytes_of(config) > bytes) << config.model.layers;
        continue;
      }
      EXPECT_EQ(config.model.layers, 5);
      if (answer.search == Search::sequence) {
        EXPECT_EQ(config.train.micro_batch, 1);
        EXPECT_EQ(config.model.sequence % 64, 0);
        config.model.sequence += 64;
        EXPECT_TRUE(config.model.sequence > 1000000 || bytes_of(config) > bytes);
        continue;
      }
      const Index batch = 48, found = config.train.micro_batch;
      EXPECT_EQ(batch % found, 0);
      micro_batches.insert(found);
      for (config.train.micro_batch = found + 1; config.train.micro_batch <= batch / fit_ranks;
           ++config.train.micro_batch) {
        if (batch % config.train.micro_batch == 0) {
          EXPECT_GT(bytes_of(config), bytes);
        }
      }
    }
  }
  EXPECT_TRUE(micro_batches.contains(1) && micro_batches.contains(24)) << "too few budgets";
  EXPECT_TRUE(layers.contains(1) && layers.size() > 10) << "too few budgets";
}

TEST(Fit, EveryStageIsAnsweredOrRefusedByTheRules) {
  const Fit found = fit(deck(), fit_ranks, 1, Index{1} << 28);
  for (Index stage = 0; stage <= 3; ++stage) {
    deck::Config config = deck();
    config.zero.stage = stage;
    std::string reason;
    try {
      deck::resolve(config, {.ranks = fit_ranks});
    } catch (const Error& error) {
      reason = error.what();
    }
    const auto answers = std::ranges::count_if(
        found.answers, [&](const Answer& a) { return a.entry.stage == stage; });
    EXPECT_EQ(answers, reason.empty() ? 12 : 0) << "in four modes of recomputation, " << stage;
    const auto refused =
        std::ranges::find_if(found.refusals, [&](const Refusal& r) { return r.stage == stage; });
    ASSERT_EQ(refused == found.refusals.end(), reason.empty()) << stage;
    if (!reason.empty()) {
      EXPECT_EQ(refused->reason, reason);
    }
  }
}

// Recomputed activations do not have to fit, and the answer names the recomputation.
TEST(Fit, RecomputationMakesRoom) {
  using deck::RecomputeMode;
  const auto largest_of = [](const Fit& found, Search search, RecomputeMode mode) {
    Index sum = 0;
    for (const Answer& a : found.answers) {
      if (a.search == search && a.entry.recompute.mode == mode)
        sum += search == Search::layers     ? a.entry.layers
               : search == Search::sequence ? a.entry.sequence
                                            : a.entry.micro_batch;
    }
    return sum;
  };
  const Index memory = (Index{1} << 24) + tensor::gemm_workspace_bytes(0);
  const Fit found = fit(deck(), fit_ranks, 1, memory);
  for (const Search search : {Search::micro_batch, Search::sequence, Search::layers}) {
    const Index none = largest_of(found, search, RecomputeMode::none);
    const Index layernorm_gelu = largest_of(found, search, RecomputeMode::layernorm_gelu);
    const Index feed_forward = largest_of(found, search, RecomputeMode::feed_forward);
    const Index full = largest_of(found, search, RecomputeMode::full);
    EXPECT_GT(none, 0);
    EXPECT_GT(layernorm_gelu, none);
    EXPECT_GT(feed_forward, layernorm_gelu);
    EXPECT_GT(full, feed_forward);
  }
  deck::Config offloading = deck();
  offloading.recompute = {.mode = RecomputeMode::full, .offload = deck::Offload::host};
  for (const Answer& a : fit(offloading, fit_ranks, 1, Index{1} << 23).answers)
    EXPECT_EQ(a.entry.recompute.mode, RecomputeMode::full) << "the rules refuse the others";
}

TEST(Fit, AnswersNothingWhereNotEvenOneLayerFits) {
  const Fit found = fit(deck(), fit_ranks, 1, 1000);
  EXPECT_TRUE(found.answers.empty());
  EXPECT_EQ(nlohmann::json::parse(json(std::vector{found})), nlohmann::json::array());
  EXPECT_NE(table(std::vector{found}).find("fits in no stage"), std::string::npos);
}

TEST(Fit, SettingsNameTheKeysThatGiveTheAnswer) {
  const Fit found = fit(deck(), fit_ranks, 1, Index{1} << 24);
  ASSERT_EQ(found.answers.size() % 3, 0U);
  const auto all = nlohmann::json::parse(json(std::vector{found}));
  ASSERT_EQ(all.size(), found.answers.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Answer& answer = found.answers[i];
    nlohmann::json expected{{"zero.stage", answer.entry.stage},
                            {"recompute.mode", std::string(name_of(answer.entry.recompute.mode))}};
    if (answer.search == Search::layers) expected["model.layers"] = answer.entry.layers;
    if (answer.search == Search::sequence) expected["model.sequence"] = answer.entry.sequence;
    if (answer.search != Search::layers) expected["train.micro_batch"] = answer.entry.micro_batch;
    EXPECT_EQ(all[i].at("settings"), expected);
    EXPECT_EQ(all[i].at("total_bytes"), answer.entry.total_bytes());
  }
}

}  // namespace
}  // namespace kzero::plan
