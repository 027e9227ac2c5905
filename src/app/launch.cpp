#include "app/launch.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "base/printable.hpp"
#include "comm/placement.hpp"
#include "convert/architecture.hpp"
#include "deck/reader.hpp"
#include "deck/schema.hpp"
#include "deck/writer.hpp"
#include "grid/agreement.hpp"
#include "grid/nodes.hpp"
#include "grid/process_grid.hpp"
#include "model/definition.hpp"
#include "runtime/host_name.hpp"
#include "runtime/launch.hpp"
#include "runtime/threads.hpp"

namespace kzero::app {

namespace {

/// The first key in which a rank's deck differs from another deck, as `key = value`; empty if they
/// are equal.
std::string difference(const deck::Config& mine, const deck::Config& other) {
  for (const deck::Config* deck : {&mine, &other}) {  // either may have more tables in a list
    for (const deck::Key* key : deck::keys_in(*deck)) {
      if (key->get(mine) == key->get(other)) continue;
      return fmt::format("{} = {}", key->path, printable_start(as_toml(*key, key->get(mine))));
    }
  }
  return "";
}

/// Describes to rank 0 which ranks have a deck that differs from its own.
std::string describe(const std::vector<std::string>& differences) {
  constexpr int max_named = 8;
  std::string ranks, first;
  int named = 0;
  for (std::size_t rank = 0; rank < differences.size(); ++rank) {
    if (differences[rank].empty()) continue;
    if (first.empty()) first = fmt::format("rank {} has {}", rank, differences[rank]);
    if (++named <= max_named) ranks += fmt::format("{}{}", named > 1 ? ", " : "", rank);
  }
  if (named > max_named) ranks += ", ...";
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

namespace {

/// Makes a Config from the deck's text. Rank 0 reads the file named by model.config and sends its
/// contents to the others, which might see another file system. Collective over `world`.
deck::Config read_together(const grid::Group& world, const deck::Source& deck,
                           const DeckArguments& arguments, deck::Purpose purpose) {
  deck::Config config;
  convert::ConfigText model;
  const auto read = [&](const deck::Architecture& architecture) {
    config = deck::read(deck, arguments.overrides, {world.size(), purpose, model::parameter_names},
                        architecture);
  };
  grid::collectively(world, [&] {
    if (!world.is_root()) return;
    read([&](const std::string& path) {
      model = convert::load_config(path);
      return convert::architecture(model);
    });
  });
  const std::string named = world.broadcast(config.model.config);
  model.file = world.broadcast(model.file.string());
  model.text = world.broadcast(model.text);
  grid::collectively(world, [&] {
    if (world.is_root()) return;
    read([&](const std::string& path) {
      KZERO_REQUIRE(path == named, ExitCode::usage,
                    "the ranks of this launch have different decks: rank {} has model.config = {}, "
                    "rank 0 {}; start every rank with the same deck and overrides",
                    world.rank(), printable_start(path),
                    named.empty() ? "none" : printable_start(named));
      return convert::architecture(model);
    });
  });
  return config;
}

}  // namespace

deck::Config read_deck(const grid::Group& world, const DeckArguments& arguments,
                       deck::Purpose purpose) {
  std::string text;
  grid::collectively(world, [&] {
    if (world.is_root()) text = load(arguments.file).text;
  });
  text = world.broadcast(text);
  deck::Config config = read_together(world, {arguments.file, text}, arguments, purpose);
  grid::collectively(world, [&] { runtime::require_startable(config.run.threads); });
  require_same(world, arguments.file, config);
  return config;
}

deck::Placement placement_of(const deck::Config& config, const runtime::Session& session) {
  const grid::Group world = grid::world_group();
  return comm::find_placement(world, grid::Nodes(world, runtime::host_name()), session, config);
}

}  // namespace kzero::app
