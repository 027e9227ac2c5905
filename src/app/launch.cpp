#include "app/launch.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "base/printable.hpp"
#include "deck/reader.hpp"
#include "deck/schema.hpp"
#include "deck/writer.hpp"
#include "grid/agreement.hpp"
#include "runtime/launcher.hpp"
#include "runtime/threads.hpp"

namespace kzero::app {

namespace {

/// The first key in which a rank's deck differs from another one, as `key = value`; empty if none
/// does.
std::string difference(const deck::Config& mine, const deck::Config& other) {
  for (const deck::Key& key : deck::keys()) {
    if (key.get(mine) == key.get(other)) continue;
    return fmt::format("{} = {}", key.path, printable_start(as_toml(key, key.get(mine))));
  }
  return "";
}

/// Describes to rank 0 the ranks whose decks differ from its own.
std::string describe(const std::vector<std::string>& differences) {
  constexpr int most_named = 8;
  std::string ranks, first;
  int named = 0;
  for (std::size_t rank = 0; rank < differences.size(); ++rank) {
    if (differences[rank].empty()) continue;
    if (first.empty()) first = fmt::format("rank {} has {}", rank, differences[rank]);
    if (++named <= most_named) ranks += fmt::format("{}{}", named > 1 ? ", " : "", rank);
  }
  if (named > most_named) ranks += ", ...";
  return fmt::format(
      "the ranks of this launch have different decks: {}, unlike rank 0 (differing: {} of {} "
      "ranks, {}); start every rank with the same deck and overrides",
      first, named, differences.size(), ranks);
}

/// Collective over `world`.
void require_same(const grid::Group& world, const std::string& file, const deck::Config& config) {
  const std::string text = file + '\n' + deck::resolved(config);
  const auto hash = static_cast<Index>(checksum(std::as_bytes(std::span(text))) >> 1U);
  if (world.min(hash) == world.max(hash)) return;
  const std::string first_file = world.broadcast(file);
  const std::string first_deck = world.broadcast(deck::resolved(config));
  std::string mine;
  grid::collectively(world, [&] {
    if (world.is_root()) return;
    mine = difference(config, deck::read({first_file, first_deck}, {}, {world.size()}));
    if (mine.empty() && file != first_file) mine = "the deck " + printable_start(file);
  });
  const auto differences = world.gather(mine);
  grid::collectively(world, [&] {
    if (world.is_root()) throw Error(ExitCode::usage, describe(differences));
  });
}

}  // namespace

void check_launch(const grid::Group& world) {
  const auto foreign = runtime::foreign_launch(world.size());
  if (foreign && !foreign->all_know) throw Error(ExitCode::usage, foreign->problem);
  grid::collectively(world, [&] {
    if (foreign) throw Error(ExitCode::usage, foreign->problem);
    runtime::threads_of_environment();
  });
}

deck::Config read_deck(const grid::Group& world, const DeckArguments& arguments,
                       deck::Purpose purpose) {
  deck::Config config;
  std::string text;
  grid::collectively(world, [&] {
    if (world.is_root()) text = load(arguments.file).text;
  });
  text = world.broadcast(text);
  grid::collectively(world, [&] {
    config = deck::read({arguments.file, text}, arguments.overrides, {world.size(), purpose});
    runtime::require_startable(config.run.threads);
  });
  require_same(world, arguments.file, config);
  return config;
}

}  // namespace kzero::app
