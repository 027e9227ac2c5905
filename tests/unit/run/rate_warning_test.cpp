#include "run/restart_rules.hpp"

#include <gtest/gtest.h>

#include "deck/writer.hpp"
#include "support/error_text.hpp"

namespace kzero::tests {
namespace {

deck::Config finished_deck(deck::Schedule schedule) {
  deck::Config config;
  config.train.steps = 1000;
  config.optimizer.lr = 3.7e-3;
  config.optimizer.min_lr = 1e-4;
  config.optimizer.warmup = 10;
  config.optimizer.schedule = schedule;
  if (schedule == deck::Schedule::wsd) config.optimizer.decay = 200;
  return config;
}

/// The warning of a run that resumes with `now` after this many steps of `before`.
std::string warning(const deck::Config& before, Index steps_done, const deck::Config& now) {
  checkpoint::Manifest manifest;
  manifest.deck = deck::resolved(before);
  manifest.step = steps_done;
  return run::rate_warning(manifest, now);
}

TEST(RateWarning, HasBothRatesOfAnExtendedRunAndTheRemedy) {
  const deck::Config before = finished_deck(deck::Schedule::cosine);
  deck::Config now = before;
  now.train.steps = 100000;
  const std::string text = warning(before, 1000, now);
  EXPECT_EQ(text.find("warning     the learning rate rises by a factor of 37: 0.0001 in step 1000, "
                      "0.0037 in step 1001; the schedule now spans 100000 steps, not 1000\n"),
            0U)
      << text;
  EXPECT_TRUE(contains(text, "optimizer.schedule = \"wsd\"")) << text;
  EXPECT_TRUE(contains(text, "optimizer.ema")) << text;
}

TEST(RateWarning, NamesTheStepBeforeTheDecay) {
  const deck::Config before = finished_deck(deck::Schedule::wsd);
  deck::Config now = before;
  now.train.steps = 2000;
  const std::string text = warning(before, 1000, now);
  EXPECT_TRUE(contains(text, "resume from a checkpoint of step 800 or before")) << text;
  EXPECT_EQ(warning(before, 800, now), "") << "the rate is still constant there";
}

TEST(RateWarning, IsSilentIfTheScheduleGoesOn) {
  for (const auto schedule : {deck::Schedule::cosine, deck::Schedule::linear, deck::Schedule::wsd,
                              deck::Schedule::constant}) {
    const deck::Config same = finished_deck(schedule);
    for (const Index step : {0, 1, 2, 9, 10, 500, 999, 1000})
      EXPECT_EQ(warning(same, step, same), "") << step;
  }
  const deck::Config before = finished_deck(deck::Schedule::constant);
  deck::Config now = before;
  now.train.steps = 2000;
  EXPECT_EQ(warning(before, 1000, now), "");
  now = finished_deck(deck::Schedule::cosine);
  now.train.steps = 1010;
  EXPECT_EQ(warning(finished_deck(deck::Schedule::cosine), 500, now), "") << "a small change";
  EXPECT_EQ(warning(finished_deck(deck::Schedule::cosine), 5, now), "") << "while it warms up";
}

TEST(RateWarning, SaysAFallToo) {
  const deck::Config before = finished_deck(deck::Schedule::constant);
  deck::Config now = before;
  now.optimizer.lr = 3.7e-4;
  const std::string text = warning(before, 500, now);
  EXPECT_EQ(text,
            "warning     the learning rate falls by a factor of 10: 0.0037 in step 500, "
            "0.00037 in step 501");
  now.optimizer.lr = 0;
  EXPECT_TRUE(contains(warning(before, 500, now), "falls: 0.0037 in step 500, 0 in step 501"));
}

TEST(RateWarning, HasNoRemedyForARateThatTheDeckRaises) {
  const deck::Config before = finished_deck(deck::Schedule::cosine);
  deck::Config now = before;
  now.optimizer.lr = 1e-2;
  const std::string text = warning(before, 500, now);
  EXPECT_TRUE(contains(text, "the learning rate rises by a factor of ")) << text;
  EXPECT_FALSE(contains(text, "extended")) << text;
}

TEST(RateWarning, NeedsARecordedDeckAndAStepToDo) {
  const deck::Config config = finished_deck(deck::Schedule::cosine);
  checkpoint::Manifest manifest;
  manifest.step = 1500;
  manifest.deck = "\x01 no deck";
  deck::Config now = config;
  now.train.steps = 2000;
  EXPECT_EQ(run::rate_warning(manifest, now), "");
  EXPECT_EQ(warning(config, 1000, config), "");
}

}  // namespace
}  // namespace kzero::tests
