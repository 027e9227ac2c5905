#include "train/checkpoints.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "support/checkpoints.hpp"

namespace kzero::tests {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// What rank 0 is told by the restart of a training whose checkpoint holds `deck_of_writer`.
std::string notes_of_restart(const grid::Group& group, const deck::Config& config,
                             const std::string& deck_of_writer) {
  std::ostringstream shown;
  metrics::Console console(shown, metrics::plain_screen(group.rank()), 1);
  const train::RunRequest writer{config, deck_of_writer, "deck.toml", {}};
  const train::RunRequest reader{config, deck::resolved(config), "deck.toml", {}};
  {
    Training first(config, group);
    first.engine->initialise({});
    first.run(0, 1);
    train::Checkpoints(writer, first.grid, nullptr, 7, *first.engine, console, nullptr).save(1);
  }
  shown.str("");
  Training second(config, group);
  train::Checkpoints checkpoints(reader, second.grid, nullptr, 7, *second.engine, console, nullptr);
  EXPECT_EQ(checkpoints.resume(), 1);
  return shown.str();
}

TEST(Checkpoints, OfARunWhoseDeckSpelledAModeOtherwiseRestartWithoutANote) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  deck::Config config = small_deck();
  config.recompute.mode = deck::RecomputeMode::full;
  config.checkpoint.folder = folder.path().string();
  const std::string before =
      replaced(deck::resolved(config), "mode = \"full\"", "mode = \"block\"");
  const std::string notes = notes_of_restart(group, config, before);
  EXPECT_EQ(notes.find("recompute.mode"), std::string::npos) << notes;
  if (group.is_root()) {
    EXPECT_NE(notes.find("resumed from"), std::string::npos) << notes;
  }
}

TEST(Checkpoints, OfARunWithAnotherDeckRestartWithANoteOfEachChange) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder(group);
  deck::Config config = small_deck();
  config.recompute.mode = deck::RecomputeMode::full;
  config.checkpoint.folder = folder.path().string();
  const std::string before =
      replaced(deck::resolved(config), "mode = \"full\"", "mode = \"selective\"");
  const std::string notes = notes_of_restart(group, config, before);
  if (group.is_root()) {
    EXPECT_NE(notes.find("recompute.mode is \"full\", was \"layernorm_gelu\""), std::string::npos)
        << notes;
  }
}

}  // namespace
}  // namespace kzero::tests
