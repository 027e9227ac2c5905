#include "run/evaluations.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "data/sampler.hpp"
#include "metrics/jsonl_sink.hpp"
#include "run/ending.hpp"
#include "support/checkpoints.hpp"
#include "support/error_text.hpp"

namespace kzero::tests {
namespace {

using run::BegunEvaluations;
using run::EvaluationMark;

deck::Config deck_with_evaluations(const std::filesystem::path& folder) {
  deck::Config config = small_deck();
  config.checkpoint.folder = folder.string();
  config.train.steps = 9;
  config.train.validate_every = 3;
  config.train.validation_batches = 2;
  config.data.validation_fraction = 0.3;
  return config;
}

/// The evaluations of a run with a validation and one [[evaluate]] table.
class Evaluating {
 public:
  Evaluating(const grid::Group& group, const std::filesystem::path& folder)
      : training_(deck_with_evaluations(folder), group),
        console_(shown_, metrics::plain_screen(group.rank()), 1),
        evaluations((add_set(), training_.config), group, training_.dataset, *training_.engine,
                    console_, nullptr) {
    training_.engine->initialise({});
  }

  /// Records the micro-batches before which the question is asked. Answers yes at micro-batch
  /// `count`.
  engine::StopQuestion stops_at(Index count) {
    return [this, count] { return ++asked >= count; };
  }

  /// The number of the root's lines with these words.
  Index lines_with(const std::string& words) const {
    std::istringstream text(shown_.str());
    Index count = 0;
    for (std::string line; std::getline(text, line);) count += contains(line, words) ? 1 : 0;
    return count;
  }

  /// The losses that the root printed, without their times.
  std::string losses() const {
    std::istringstream text(shown_.str());
    std::string found;
    for (std::string line; std::getline(text, line);) {
      if (contains(line, ": loss ")) found += line.substr(0, line.find(" over ")) + '\n';
    }
    return found;
  }

  Index asked = 0;

 private:
  void add_set() {
    const auto stream =
        std::dynamic_pointer_cast<const data::TokenStream>(training_.dataset.sources.front().files);
    const Index sequence = training_.config.model.sequence;
    data::EvaluationSet set{"other", 3, 5, stream, nullptr};
    set.samples = std::make_unique<data::Sampler>(
        stream, sequence, 0, (stream->size() - 1) / sequence, deck::DataOrder::sequential, 0);
    training_.dataset.evaluations.push_back(std::move(set));
  }

  Training training_;
  std::ostringstream shown_;
  metrics::Console console_;

 public:
  run::Evaluations evaluations;
};

constexpr Index never = 1 << 20;

TEST(Evaluations, AStopBeforeAnyMicroBatchIsCompletedByARestart) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  const EvaluationMark mark(folder.path().string());
  Evaluating whole(group, folder.path());
  whole.evaluations.mark_if_due(3);
  EXPECT_TRUE(whole.evaluations.run_if_due(whole.stops_at(never)));
  EXPECT_EQ(whole.evaluations.completed(), 2);
  group.barrier();
  if (group.is_root()) {
    EXPECT_EQ(mark.read(), std::nullopt);
  }
  const Index validation_rounds = whole.asked - ceil_div(Index{5}, Index{group.size()});
  for (Index at = 1; at <= whole.asked; ++at) {
    Evaluating stopped(group, folder.path()), restarted(group, folder.path());
    stopped.evaluations.mark_if_due(3);
    EXPECT_FALSE(stopped.evaluations.run_if_due(stopped.stops_at(at)));
    EXPECT_EQ(stopped.asked, at) << "it stops before that micro-batch";
    const bool is_validated = at > validation_rounds;
    EXPECT_EQ(stopped.evaluations.completed(), is_validated ? 1 : 0);
    if (group.is_root()) {
      const std::vector<std::string> complete(is_validated ? 1 : 0, "validation");
      EXPECT_EQ(mark.read(), (BegunEvaluations{3, complete}));
      EXPECT_EQ(stopped.lines_with("stopped before its end; a restart completes it"), 1);
    }
    group.barrier();
    EXPECT_TRUE(restarted.evaluations.complete(3, restarted.stops_at(never)));
    EXPECT_EQ(restarted.asked, is_validated ? whole.asked - validation_rounds : whole.asked)
        << "what was stopped is done in full, what was complete is not repeated";
    EXPECT_EQ(stopped.losses() + restarted.losses(), whole.losses());
    group.barrier();
    if (group.is_root()) {
      EXPECT_EQ(mark.read(), std::nullopt);
    }
    group.barrier();
  }
}

TEST(Evaluations, OfAnotherStepAreNotCompleted) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  Evaluating stopped(group, folder.path()), restarted(group, folder.path());
  stopped.evaluations.mark_if_due(3);
  EXPECT_FALSE(stopped.evaluations.run_if_due(stopped.stops_at(1)));
  group.barrier();
  EXPECT_TRUE(restarted.evaluations.complete(6, restarted.stops_at(1)));
  EXPECT_EQ(restarted.asked, 0);
  restarted.evaluations.mark_if_due(4);
  EXPECT_TRUE(restarted.evaluations.run_if_due(restarted.stops_at(1))) << "nothing is due";
}

// The signal reaches one rank at an arbitrary time.
TEST(StopAgreement, ASignalToOneRankStopsAllAtTheSameMicroBatch) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  const deck::Config config = resolved(deck_with_evaluations(folder.path()), group);
  const Ranks ranks(config, group);
  const engine::Blueprint blueprint(config, ranks.grid.data().size());
  std::ostringstream shown;
  metrics::Console console(shown, metrics::plain_screen(group.rank()), 1);
  run::NodeTimes times(config, ranks.machinery, blueprint, console, nullptr);
  for (int rank = 0; rank < group.size(); ++rank) {
    const runtime::StopSignal stop;
    run::StopAgreement agreement(config.run, group, stop, times);
    Evaluating evaluating(group, folder.path());
    evaluating.evaluations.mark_if_due(3);
    std::optional<run::Ending> ending;
    EXPECT_FALSE(evaluating.evaluations.run_if_due([&] {
      if (++evaluating.asked == 2 && group.rank() == rank) {
        ::kill(::getpid(), SIGUSR1);
        while (!stop.wish()) std::this_thread::yield();
      }
      if (agreement.is_due_within_evaluation()) ending = agreement.within_evaluation();
      return ending.has_value();
    }));
    ASSERT_TRUE(ending);
    EXPECT_EQ(ending->reason, "signal");
    EXPECT_EQ(ending->signal, SIGUSR1);
    const Index asked = evaluating.asked;
    EXPECT_EQ(group.min(asked), group.max(asked));
  }
}

TEST(EvaluationMark, IsReadAsItWasWrittenAndCountsForNothingIfDamaged) {
  const TemporaryFolder folder;
  const EvaluationMark mark(folder.path().string());
  EXPECT_EQ(mark.read(), std::nullopt);
  const BegunEvaluations begun{1200, {"validation", "evaluate two words"}};
  mark.write(begun);
  EXPECT_EQ(mark.read(), begun);
  mark.remove();
  EXPECT_EQ(mark.read(), std::nullopt);
  mark.remove();
  for (const char* text : {"", "x\n", "-3\n", "12x\nvalidation\n"}) {
    std::ofstream(folder.path() / run::evaluation_mark_name) << text;
    EXPECT_EQ(mark.read(), std::nullopt) << text;
  }
  const EvaluationMark none("");
  none.write(begun);
  EXPECT_EQ(none.read(), std::nullopt);
}

}  // namespace
}  // namespace kzero::tests
