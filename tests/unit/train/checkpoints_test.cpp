#include "train/checkpoints.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "support/checkpoints.hpp"
#include "support/error_text.hpp"

namespace kzero::tests {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// What rank 0 is told by a restart whose checkpoint was written with that `recompute.mode` in its
/// deck, and whose own deck says "full".
std::string notes_of_restart(const grid::Group& group, const std::string& mode_of_writer) {
  const SharedFolder folder(group);
  deck::Config config = small_deck();
  config.recompute.mode = deck::RecomputeMode::full;
  config.checkpoint.folder = folder.path().string();
  const std::string deck = deck::resolved(config);
  const train::RunRequest writer{
      config,
      replaced(deck, "mode = \"full\"", "mode = \"" + mode_of_writer + "\""),
      "deck.toml",
      {}};
  const train::RunRequest reader{config, deck, "deck.toml", {}};
  std::ostringstream shown;
  metrics::Console console(shown, metrics::plain_screen(group.rank()), 1);
  {
    Training first(config, group);
    first.engine->initialise({});
    first.run(0, 1);
    train::Checkpoints(writer, first.grid, nullptr, {.data_digest = 7}, *first.engine, console,
                       nullptr)
        .save(1);
  }
  shown.str("");
  Training second(config, group);
  train::Checkpoints checkpoints(reader, second.grid, nullptr, {.data_digest = 7}, *second.engine,
                                 console, nullptr);
  EXPECT_EQ(checkpoints.resume(), 1);
  return shown.str();
}

TEST(Checkpoints, OfARunWhoseDeckSpelledAModeOtherwiseRestartWithoutANote) {
  const grid::Group group = first_ranks(launch_ranks());
  const std::string notes = notes_of_restart(group, "block");
  EXPECT_FALSE(contains(notes, "recompute.mode")) << notes;
  EXPECT_EQ(contains(notes, "resumed from"), group.is_root()) << notes;
}

TEST(Checkpoints, OfARunWithAnotherDeckRestartWithANoteOfEachChange) {
  const grid::Group group = first_ranks(launch_ranks());
  const std::string notes = notes_of_restart(group, "selective");
  EXPECT_EQ(contains(notes, "recompute.mode is \"full\", was \"layernorm_gelu\""), group.is_root())
      << notes;
}

}  // namespace
}  // namespace kzero::tests
