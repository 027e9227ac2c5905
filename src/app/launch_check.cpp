#include "app/commands.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/launch.hpp"
#include "base/descriptor.hpp"
#include "comm/failure.hpp"
#include "comm/launch_watch.hpp"
#include "comm/placement.hpp"
#include "deck/config.hpp"
#include "grid/agreement.hpp"
#include "grid/process_grid.hpp"
#include "plan/block_rate.hpp"
#include "plan/rates.hpp"
#include "probe/report.hpp"
#include "probe/survey.hpp"
#include "runtime/host_name.hpp"
#include "runtime/session.hpp"
#include "runtime/watchdog.hpp"

namespace kzero::app {

namespace {

/// Operations per second of the launch's slowest rank, by precision.
using PrecisionRates = std::vector<std::pair<Dtype, double>>;

/// A number with three digits and without an exponent, which a size of a deck cannot have.
std::string three_digits(double value) {
  if (!(value > 0)) return "0";
  const int decimals = std::clamp(2 - static_cast<int>(std::floor(std::log10(value))), 0, 9);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string size_of(double bytes) {
  return bytes < 1e8 ? fmt::format("\"{:.0f}kB\"", std::max(1.0, bytes / 1e3))
                     : fmt::format("\"{:.0f}MB\"", bytes / 1e6);
}

/// The slowest of a figure over all nodes that have it.
template <class Figure>
double slowest_of(const probe::Survey& survey, const Figure& figure) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const probe::NodeFigures& node : survey.figures.nodes)
    smallest = std::fmin(smallest, figure(node));
  return smallest;
}

double longest_of(const probe::Survey& survey, probe::Link probe::NodeFigures::*link) {
  double largest = 0;
  for (const probe::NodeFigures& node : survey.figures.nodes)
    largest = std::fmax(largest, (node.*link).latency_seconds);
  return largest;
}

std::string rank_text(const deck::Config& config, const probe::Survey& survey,
                      const PrecisionRates& precisions) {
  std::string text = "[rank]\n";
  for (const auto& [precision, rate] : precisions)
    text += fmt::format("tflops_{} = {}  # attained in a block like the deck's\n",
                        name_of(precision), three_digits(rate / 1e12));
  if (precisions.empty())
    text += fmt::format(
        "tflops_{} = {}  # of products alone: add [attained] for what training attains of it\n",
        name_of(config.train.precision),
        three_digits(slowest_of(survey, [](const auto& n) { return n.slowest.operations; }) /
                     1e12));
  return text +
         fmt::format(
             "memory_bandwidth = {}\n# memory = \"80GB\"  # what a rank may fill: not "
             "measured; kzero plan then says what does not fit\n\n",
             size_of(slowest_of(survey, [](const auto& n) { return n.slowest.memory_bytes; })));
}

std::string links_text(const probe::Launch& launch, const deck::Config& config,
                       const probe::Survey& survey) {
  using probe::NodeFigures;
  const auto speed = [&](probe::Link NodeFigures::*link) {
    return slowest_of(survey, [&](const NodeFigures& n) { return (n.*link).bytes_per_second; });
  };
  const double within = speed(&NodeFigures::within), between = speed(&NodeFigures::between);
  std::string text = fmt::format("[node]\nranks = {}\n", launch.nodes.ranks(0).size());
  if (std::isfinite(within)) {
    text += fmt::format("bandwidth = {}\nlatency = {}\n", size_of(within),
                        three_digits(1e6 * longest_of(survey, &NodeFigures::within)));
  } else {
    text += fmt::format("bandwidth = {}  # not used: a node has one rank\n", size_of(1e9));
  }
  const char* const communicator = comm::moves_by_itself(config) ? "nccl" : "mpi";
  text += fmt::format("\n[network]\ncommunicator = \"{}\"\n", communicator);
  if (!std::isfinite(between)) return text + "# Not measured: the launch was on one node.\n";
  return text + fmt::format(
                    "rank_bandwidth = {0}\nnode_bandwidth = {0}  # of one rank; nodes with several "
                    "adapters send more\nlatency = {1}\n",
                    size_of(between),
                    three_digits(1e6 * longest_of(survey, &NodeFigures::between)));
}

void write_new(const std::string& file, const std::string& text) {
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  const bool is_written = out.number() >= 0 && ::write(out.number(), text.data(), text.size()) ==
                                                   static_cast<ssize_t>(text.size());
  KZERO_REQUIRE(is_written, ExitCode::files, "{}: the rates file cannot be written: {}", file,
                std::strerror(errno));
}

/// Measures a block like the deck's in every precision, on all ranks at once; in builds for
/// devices, whose blocks are not measured, returns nothing. Collective over the launch's world.
PrecisionRates measure_precisions(const probe::Launch& launch, const deck::Config& config) {
  PrecisionRates found;
  if (!plan::can_measure_blocks()) return found;
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    deck::Config changed = config;
    changed.train.precision = precision;
    launch.world.barrier();
    const double mine = plan::block_rate(changed, launch.threads).rate;
    found.emplace_back(precision, std::ranges::min(launch.world.all_gather(mine)));
  }
  return found;
}

/// Throws AgreedError unless the launch can be described by a file that can be created: nodes have
/// equally many ranks, and nothing has the file's name. Collective over the launch's world.
void require_new_rates_file(const std::string& file, const probe::Launch& launch) {
  grid::collectively(launch.world, [&] {
    for (int node = 1; node < launch.nodes.count(); ++node)
      KZERO_REQUIRE(launch.nodes.ranks(node).size() == launch.nodes.ranks(0).size(),
                    ExitCode::usage,
                    "--rates needs as many ranks on each node, found {} on {} and {} on {}",
                    launch.nodes.ranks(0).size(), launch.nodes.name(0),
                    launch.nodes.ranks(node).size(), launch.nodes.name(node));
    if (!launch.world.is_root()) return;
    KZERO_REQUIRE(::access(file.c_str(), F_OK) != 0, ExitCode::files,
                  "{} exists; --rates writes a new file", file);
  });
}

/// Writes the file on the root. Without `precisions`, the survey's products are the rate of the
/// deck's precision. Throws AgreedError(files). Collective over the launch's world.
void write_rates(const std::string& file, const probe::Launch& launch, const deck::Config& config,
                 const probe::Survey& survey, const PrecisionRates& precisions) {
  grid::collectively(launch.world, [&] {
    if (!launch.world.is_root()) return;
    write_new(file, fmt::format("# Measured by kzero check --launch: {} ranks on {} nodes, {} "
                                "threads a rank; the slowest rank and link.\n\n",
                                survey.ranks, launch.nodes.count(), survey.threads) +
                        rank_text(config, survey, precisions) + links_text(launch, config, survey));
  });
}

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
  const bool agrees = !world.is_root() || found.comparison.agrees();
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
