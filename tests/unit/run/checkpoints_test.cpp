#include "run/checkpoints.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/checksum.hpp"
#include "base/input_file.hpp"
#include "base/wait.hpp"
#include "checkpoint/inspect.hpp"
#include "run/trainer.hpp"
#include "support/checkpoints.hpp"
#include "support/error_text.hpp"
#include "support/host_shards.hpp"
#include "support/same_bits.hpp"

namespace kzero::tests {
namespace {

/// A deck as a run has it: with the value that kzero fills in.
deck::Config complete_deck() {
  deck::Config config = small_deck();
  config.model.feed_forward = 4 * config.model.hidden;
  return config;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// Rank 0's notes on a restart. The checkpoint's deck has that `recompute.mode`, and the run's own
/// deck has "full".
std::string notes_of_restart(const grid::Group& group, const std::string& mode_of_writer) {
  const SharedFolder folder(group);
  deck::Config config = complete_deck();
  config.recompute.mode = deck::RecomputeMode::full;
  config.checkpoint.folder = folder.path().string();
  const std::string deck = deck::resolved(config);
  const run::RunRequest writer{
      config,
      replaced(deck, "mode = \"full\"", "mode = \"" + mode_of_writer + "\""),
      "deck.toml",
      {}};
  const run::RunRequest reader{config, deck, "deck.toml", {}};
  std::ostringstream shown;
  metrics::Console console(shown, metrics::plain_screen(group.rank()), 1);
  {
    Training first(config, group);
    first.engine->initialise({});
    first.run(0, 1);
    run::Checkpoints(writer, first.grid, nullptr, {.data_digest = 7}, *first.engine, console,
                     nullptr)
        .save(1);
  }
  shown.str("");
  Training second(config, group);
  run::Checkpoints checkpoints(reader, second.grid, nullptr, {.data_digest = 7}, *second.engine,
                               console, nullptr);
  EXPECT_EQ(checkpoints.resume(), 1);
  return shown.str();
}

/// The waits of this process during f(), by their start times.
template <class F>
std::set<std::chrono::steady_clock::time_point> waits_during(F&& f) {
  std::set<std::chrono::steady_clock::time_point> begun;
  std::atomic<bool> over = false;
  std::thread looking([&] {
    while (!over) {
      if (const auto wait = longest_wait()) begun.insert(wait->since);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  f();
  over = true;
  looking.join();
  return begun;
}

TEST(TakeFolder, WaitsForADeadOwnerInManyShortWaits) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  if (group.is_root()) {
    checkpoint::Owner owner = checkpoint::this_process();
    owner.machine = "another";
    std::ofstream(folder.path() / checkpoint::lock_name) << checkpoint::pack(owner);
  }
  deck::Checkpoint deck;
  deck.folder = folder.path().string();
  std::unique_ptr<checkpoint::FolderLock> lock;
  const auto waits = waits_during(
      [&] { lock = run::take_folder(deck, group, {.beat = 0.02, .silence = 2, .grace = 0.1}); });
  EXPECT_EQ(lock != nullptr, group.is_root());
  if (!group.is_root()) {
    EXPECT_GT(waits.size(), 3U);
  }
}

TEST(Checkpoints, OfARunWithAnotherDeckRestartWithANoteOfEachChange) {
  const grid::Group group = first_ranks(launch_ranks());
  const std::string notes = notes_of_restart(group, "layernorm_gelu");
  EXPECT_EQ(contains(notes, "resumed from"), group.is_root()) << notes;
  EXPECT_EQ(contains(notes, "recompute.mode is \"full\", was \"layernorm_gelu\""), group.is_root())
      << notes;
}

// On a device the snapshot is copied at once, the other in blocks through the staging buffer.
TEST(Checkpoints, OfMoreStateThanItsStagingAreThoseOfASnapshot) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  deck::Config config = complete_deck();
  config.model.layers = 1, config.model.hidden = 8, config.model.heads = 2;
  config.model.vocab = 262147;
  config.checkpoint.folder = folder.path().string();
  config.checkpoint.asynchronous = true;
  Training first(config, group);
  first.engine->initialise({});
  first.run(0, 1);
  const auto one = save(first, group, folder.path() / "one", 1).path;
  const auto two = save(first, group, folder.path() / "two", 1, first.engine->snapshot()).path;
  for (const auto& entry : std::filesystem::directory_iterator(one)) {
    const auto name = entry.path().filename();
    EXPECT_TRUE(load_file(one / name) == load_file(two / name)) << name;
  }
  Training second(config, group);
  EXPECT_EQ(load(second, group, folder.path() / "one"), 1);
  EXPECT_TRUE(second.state() == first.state());
  expect_planned_bytes(second, "after a load");
}

/// One job of a training. Starts from the folder's newest checkpoint, if any, runs to step `end`
/// and saves. Another kind of optimizer may start with the weights of the previous one.
class Job {
 public:
  Job(const grid::Group& group, const std::filesystem::path& folder, deck::OptimizerKind kind,
      Index stage, bool reset = true)
      : request_{deck_of(folder, kind, stage, reset), "", "deck.toml", {}},
        console_(shown_, metrics::plain_screen(group.rank()), 1),
        training(request_.config, group),
        checkpoints_(request_, training.grid, nullptr, {.data_digest = 7}, *training.engine,
                     console_, nullptr) {
    const auto found = checkpoints_.resume();
    if (!found) training.engine->initialise({});
    first_ = found.value_or(0);
  }

  std::vector<double> run_to(Index end) {
    const auto results = training.run(first_, end);
    checkpoints_.save(end);
    return numbers_of(results);
  }

  std::string shown() const { return shown_.str(); }
  Index first() const { return first_; }

 private:
  static deck::Config deck_of(const std::filesystem::path& folder, deck::OptimizerKind kind,
                              Index stage, bool reset) {
    deck::Config config = complete_deck();
    config.model.layers = 1;
    config.checkpoint.folder = folder.string();
    config.checkpoint.reset_optimizer = reset;
    config.optimizer.kind = kind;
    set_offload_if_needed(config);
    config.zero.stage = stage;
    return config;
  }

  run::RunRequest request_;
  std::ostringstream shown_;
  metrics::Console console_;

 public:
  Training training;

 private:
  run::Checkpoints checkpoints_;
  Index first_ = 0;
};

constexpr auto adafactor = deck::OptimizerKind::adafactor;
constexpr auto sgd = deck::OptimizerKind::sgd, adamw = deck::OptimizerKind::adamw;

TEST(ReducedState, RestartsBitForBit) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder one(group), two(group);
  const auto means_of = [](Job& job) {
    const auto means = job.training.engine->reduced_state();
    return std::vector<float>(means.begin(), means.end());
  };
  Job straight(group, one.path(), adafactor, 1);
  const auto expected = straight.run_to(5);
  std::vector<double> numbers = Job(group, two.path(), adafactor, 1).run_to(3);
  const std::string text = checkpoint::describe(two.path(), engine::saved_parameters);
  EXPECT_TRUE(contains(text, "optimizer   adafactor, 3 updates")) << text;
  EXPECT_TRUE(contains(text, "master, row_means of its rows, column_means of its columns")) << text;
  Job again(group, two.path(), adafactor, 3);
  for (const double number : again.run_to(5)) numbers.push_back(number);
  EXPECT_TRUE(same_bits(numbers, expected));
  EXPECT_EQ(owned_state(again.training), owned_state(straight.training));
  EXPECT_TRUE(same_bits(means_of(again), means_of(straight)));
  group.barrier();
  // Another kind has no such state, and a new one starts from zeros.
  Job other(group, two.path(), sgd, 1);
  EXPECT_TRUE(other.training.engine->reduced_state().empty());
  other.run_to(6);
  Job anew(group, two.path(), adafactor, 2);
  for (const float mean : anew.training.engine->reduced_state()) ASSERT_EQ(mean, 0);
}

TEST(ResetOptimizer, GoesOnFromTheWeightsAndRestartsBitForBit) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder one(group), two(group);
  for (const auto* folder : {&one, &two}) {
    Job before(group, folder->path(), sgd, 1);
    before.run_to(3);
  }
  Job straight(group, one.path(), adamw, 2);
  EXPECT_EQ(straight.first(), 3) << "steps and samples go on";
  EXPECT_EQ(contains(straight.shown(), "adamw begins with the weights alone"), group.is_root());
  EXPECT_EQ(straight.training.engine->optimizer_start(), 3);
  for (const checkpoint::StateShard& shard : HostShards(straight.training.engine->owned_shards())) {
    for (const float moment : shard.values("first_moment")) ASSERT_EQ(moment, 0);
  }
  const auto expected = straight.run_to(7);

  std::vector<double> numbers = Job(group, two.path(), adamw, 2).run_to(5);
  Job again(group, two.path(), adamw, 3);  // requeued with the same deck except for the stage
  EXPECT_FALSE(contains(again.shown(), "begins with the weights alone"));
  EXPECT_EQ(again.first(), 5);
  EXPECT_EQ(again.training.engine->optimizer_start(), 3);
  for (const double number : again.run_to(7)) numbers.push_back(number);
  EXPECT_TRUE(same_bits(numbers, expected));
  EXPECT_EQ(owned_state(again.training), owned_state(straight.training));
}

// AdamW's first update is almost lr times the gradient's sign, at any step.
TEST(ResetOptimizer, CountsUpdatesAnew) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  std::vector<std::vector<float>> before;
  {
    Job job(group, folder.path(), sgd, 0);
    job.run_to(5);
    for (const checkpoint::StateShard& shard : HostShards(job.training.engine->local_shards()))
      before.emplace_back(shard.values("master").begin(), shard.values("master").end());
  }
  Job job(group, folder.path(), adamw, 0);
  const double lr = job.training.step(5).lr;
  const double decay = lr * job.training.config.optimizer.weight_decay;
  std::size_t parameter = 0;
  double largest = 0;
  for (const checkpoint::StateShard& shard : HostShards(job.training.engine->local_shards())) {
    const auto after = shard.values("master");
    const std::vector<float>& was = before[parameter++];
    for (std::size_t i = 0; i < after.size(); ++i) {
      const double step = std::abs(after[i] - was[i]);
      EXPECT_LE(step, 1.001 * lr + decay * std::abs(was[i]) + 1e-6) << shard.parameter;
      largest = std::max(largest, step);
    }
  }
  EXPECT_GT(largest, 0.99 * lr);
}

TEST(ResetOptimizer, IsNeededForAnotherKind) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  Job(group, folder.path(), sgd, 0).run_to(2);
  // Lion has an array of the same name.
  const std::string text = error_of(
      ExitCode::usage, [&] { Job(group, folder.path(), deck::OptimizerKind::lion, 0, false); });
  EXPECT_TRUE(contains(text, "(optimizer.kind is \"lion\", was \"sgd\")")) << text;
  EXPECT_TRUE(contains(text, "set checkpoint.reset_optimizer = true")) << text;
  Job same(group, folder.path(), sgd, 0, false);
  EXPECT_EQ(same.first(), 2);
}

deck::Config adapters_deck(const std::filesystem::path& folder) {
  deck::Config config = complete_deck();
  config.model.initial = "not opened";  // the frozen weights are drawn from train.seed
  config.lora = {.rank = 3, .alpha = 6, .targets = {"c_attn"}};
  config.checkpoint.folder = folder.string();
  return config;
}

/// Runs f() with the Checkpoints of an initialised training of `config`.
template <class F>
void with_checkpoints(const deck::Config& config, const grid::Group& group, const F& f) {
  std::ostringstream shown;
  metrics::Console console(shown, metrics::plain_screen(group.rank()), 1);
  const run::RunRequest request{config, deck::resolved(config), "deck.toml", {}};
  Training training(config, group);
  training.engine->initialise({});
  run::Checkpoints checkpoints(request, training.grid, nullptr, {.data_digest = 7},
                               *training.engine, console, nullptr);
  f(training, checkpoints);
}

TEST(Adapters, ResumeOnTheirOwnFrozenWeightsAlone) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  const deck::Config config = adapters_deck(folder.path());
  with_checkpoints(config, group, [](Training& training, run::Checkpoints& checkpoints) {
    training.run(0, 1);
    checkpoints.save(1);
  });
  with_checkpoints(config, group, [](Training&, run::Checkpoints& checkpoints) {
    EXPECT_EQ(checkpoints.resume(), 1);
  });
  const auto refused = [&](const deck::Config& other) {
    std::string text;
    with_checkpoints(other, group, [&](Training&, run::Checkpoints& checkpoints) {
      text = error_of(ExitCode::usage, [&] { checkpoints.resume(); });
    });
    return text;
  };
  deck::Config other = config;
  other.train.seed += 1;
  std::string text = refused(other);
  EXPECT_TRUE(contains(text, "its adapters were trained on frozen weights of hash")) << text;
  other = config;
  other.lora.alpha = 12;
  text = refused(other);
  EXPECT_TRUE(contains(text,
                       "its adapters have lora.rank = 3, lora.alpha = 6 and lora.targets "
                       "c_attn, the deck has 3, 12 and c_attn"))
      << text;
  other = config;
  other.lora = {};
  text = refused(other);
  EXPECT_TRUE(contains(text, "holds adapters of rank 3 alone, but the deck trains all weights"))
      << text;
  const std::string shown = checkpoint::describe(folder.path(), engine::saved_parameters);
  EXPECT_TRUE(contains(shown, "adapters    rank 3, alpha 6, of c_attn; the weights that they"))
      << shown;
}

TEST(Adapters, DoNotResumeFromACheckpointOfAllWeights) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  const deck::Config adapters = adapters_deck(folder.path());
  deck::Config all = adapters;
  all.lora = {};
  with_checkpoints(all, group, [](Training& training, run::Checkpoints& checkpoints) {
    training.run(0, 1);
    checkpoints.save(1);
  });
  with_checkpoints(adapters, group, [](Training&, run::Checkpoints& checkpoints) {
    const std::string text = error_of(ExitCode::usage, [&] { checkpoints.resume(); });
    EXPECT_TRUE(contains(text, "holds all weights, but lora.rank = 3 trains adapters alone"))
        << text;
  });
}

TEST(Adapters, OfAFolderTrainOnTheirOwnFrozenWeightsAlone) {
  deck::Config config;
  config.lora.initial = "adapter", config.model.initial = "weights";
  run::RunInputs inputs;
  EXPECT_NO_THROW(run::require_base(inputs, config, 6)) << "PEFT's files have no hash";
  inputs.adapters_base = format_checksum(5);
  EXPECT_NO_THROW(run::require_base(inputs, config, 5));
  const std::string text = error_of(ExitCode::usage, [&] { run::require_base(inputs, config, 6); });
  EXPECT_TRUE(contains(text,
                       "lora.initial = \"adapter\": its adapters were trained on weights of "
                       "hash 0000000000000005, but those of model.initial = \"weights\" have "
                       "hash 0000000000000006"))
      << text;
}

}  // namespace
}  // namespace kzero::tests
