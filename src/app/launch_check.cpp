#include "app/launch_check.hpp"

#include <fmt/format.h>

#include <iostream>

#include "app/launch.hpp"
#include "app/launch_rates.hpp"
#include "comm/failure.hpp"
#include "comm/launch_watch.hpp"
#include "grid/process_grid.hpp"
#include "probe/report.hpp"
#include "runtime/host_name.hpp"
#include "runtime/session.hpp"
#include "runtime/watchdog.hpp"

namespace kzero::app {

namespace {

/// Longer than any measurement: a rank that waits longer waits for a rank that no longer exists, or
/// whose link is dead.
constexpr double longest_wait = 120;

/// Ends the launch from the watchdog's thread, and names the node that it waited for.
[[noreturn]] void give_up(const Wait& wait, double waited, int rank, const grid::Nodes& nodes) {
  const std::string partner =
      wait.rank < 0 ? "the ranks" : fmt::format("rank {} on {}", wait.rank, nodes.host(wait.rank));
  comm::print_failure(
      fmt::format("{}: has waited {:.0f} s for {}. A node or a link that does not answer is named "
                  "by the ranks that wait for it",
                  wait.what, waited, partner),
      rank);
  comm::leave_launch(ExitCode::other);
}

ExitCode survey_and_print(const deck::Config& config, const runtime::Session& session,
                          const SurveyOptions& options) {
  const grid::Group world = grid::world_group();
  const comm::LaunchWatch watch(session, world, 0, config.run.heartbeat);  // names a lost node
  const grid::Nodes& nodes = watch.nodes();
  const runtime::Watchdog watchdog(longest_wait, [&](const Wait& wait, auto waited) {
    give_up(wait, waited.count(), world.rank(), nodes);
  });
  const probe::Launch launch{world, nodes, session.threads(), session.node_cores()};
  if (!options.rates.empty()) require_new_rates_file(options.rates, launch);
  const probe::Survey found = probe::survey(launch, config);
  if (!options.rates.empty())
    write_rates(options.rates, launch, config, found, measure_precisions(launch, config));
  if (world.is_root())
    std::cout << (options.output == SurveyOutput::json ? probe::json_text(found, nodes)
                                                       : probe::text(found, nodes));
  const bool agrees = !world.is_root() || found.agreement.is_given();
  return world.min(agrees ? 1 : 0) == 1 ? ExitCode::done : ExitCode::other;
}

}  // namespace

ExitCode survey_launch(const DeckArguments& arguments, const SurveyOptions& options) {
  // As in `train`: Kokkos starts with the deck's threads.
  deck::Config config;
  const auto read = [&] {
    const grid::Group world = grid::world_group();
    check_launch(world);
    probe::require_one_program(world, grid::Nodes(world, runtime::host_name()));
    config = read_deck(world, arguments, deck::Purpose::train);
    return config.run.threads;
  };
  const runtime::Session session({.choose_threads = read, .has_heartbeat = true});
  return comm::ending_launch_on_failure([&] { return survey_and_print(config, session, options); });
}

}  // namespace kzero::app
