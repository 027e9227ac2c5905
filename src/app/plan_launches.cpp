#include "app/plan_launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "comm/placement.hpp"
#include "convert/architecture.hpp"
#include "deck/reader.hpp"
#include "model/definition.hpp"
#include "plan/step_time.hpp"
#include "runtime/session.hpp"

namespace kzero::app {

namespace {

/// The nodes that a launch fills: the given number, or that of the machine that a file describes.
Index nodes_of(const PlanArguments& arguments, const GivenMachine& machine, Index ranks) {
  if (machine) return ceil_div(ranks, machine->network.node_ranks);
  const Index nodes = arguments.nodes.empty() ? 1 : arguments.nodes.front();
  KZERO_REQUIRE(nodes <= ranks, ExitCode::usage,
                "--nodes must be at most the number of ranks, {}, found {}", ranks, nodes);
  return nodes;
}

/// The ranks of each launch: those of full nodes of a described machine, otherwise --ranks. Empty:
/// as many as the grid needs.
std::vector<Index> ranks_of(const PlanArguments& arguments, const GivenMachine& machine) {
  if (!machine) {
    KZERO_REQUIRE(arguments.nodes.size() <= 1, ExitCode::usage,
                  "several numbers of --nodes need --rates, which says how many ranks a node has");
    return arguments.ranks;
  }
  KZERO_REQUIRE(arguments.nodes.empty() || arguments.ranks.empty(), ExitCode::usage,
                "--rates needs one of --ranks and --nodes: its file says that a node has {} ranks",
                machine->network.node_ranks);
  if (arguments.nodes.empty()) return arguments.ranks;
  std::vector<Index> ranks;
  for (const Index nodes : arguments.nodes) ranks.push_back(nodes * machine->network.node_ranks);
  return ranks;
}

/// Makes launches of a deck that is read once: it may be a pipe.
class LaunchReader {
 public:
  LaunchReader(const PlanArguments& arguments, const GivenMachine& machine)
      : arguments_(arguments), machine_(machine), source_(load(arguments.deck.file)) {}

  std::vector<Launch> with_tensor_of_deck() const { return with(arguments_.deck.overrides); }

  std::vector<Launch> with_tensor(Index tensor) const {
    std::vector<std::string> overrides = arguments_.deck.overrides;
    overrides.push_back(fmt::format("grid.tensor={}", tensor));
    return with(overrides);
  }

 private:
  std::vector<Launch> with(const std::vector<std::string>& overrides) const {
    const auto read = [&](Index ranks) {
      return deck::read(source_, overrides, {ranks, deck::Purpose::plan, model::parameter_names},
                        convert::read_architecture);
    };
    std::vector<Index> all = ranks_of(arguments_, machine_);
    if (all.empty()) {
      const deck::Grid grid = read(0).grid;
      all = {std::max<Index>(1, grid.data) * grid.tensor};
    }
    std::vector<Launch> found;
    for (const Index ranks : all) {
      const Index nodes = nodes_of(arguments_, machine_, ranks);
      try {
        found.push_back(placed(read(ranks), ranks, nodes));
      } catch (const Error& error) {
        if (error.code() != ExitCode::usage) throw;
        found.push_back({.ranks = ranks, .nodes = nodes, .config = {}, .refusal = error});
      }
    }
    return found;
  }

  Launch placed(deck::Config config, Index ranks, Index nodes) const {
    const Index node_ranks = ceil_div(ranks, nodes);
    const bool chooses = machine_ && machine_->communicator &&
                         config.run.communicator == deck::CommunicatorKind::automatic;
    if (chooses) config.run.communicator = *machine_->communicator;
    config.placement = comm::placement_on(comm::filled_nodes(ranks, node_ranks), config, ranks);
    const Index asked = arguments_.threads > 0 ? arguments_.threads : config.run.threads;
    return {ranks, nodes, config, runtime::threads_per_rank(asked, node_ranks), chooses};
  }

  const PlanArguments& arguments_;
  const GivenMachine& machine_;
  deck::Source source_;
};

/// The part of a core's time that a thread of a planned rank has on a node like this one.
double core_share(const plan::Entry& entry) {
  const Index threads = entry.outlines.front().node_ranks * entry.threads;
  return std::min(1.0, static_cast<double>(runtime::usable_cores()) / static_cast<double>(threads));
}

/// Rates for every number of threads in the launches, measured with as many as this machine has
/// cores for. Empty if operations cannot be measured.
std::optional<plan::RateSource> measured_rates(const plan::GivenRates& given,
                                               const std::vector<Launch>& all) {
  if (!given.operations && !plan::can_measure_blocks()) return std::nullopt;
  Index threads = 1;
  for (const Launch& launch : all)
    if (!launch.refusal) threads = std::max(threads, launch.threads.count);
  threads = std::min(threads, runtime::usable_cores());
  const bool measures = !given.operations || !given.memory_bytes || !given.sent_bytes;
  const bool is_busy = measures && plan::is_busy(threads);
  if (is_busy) threads = 1;
  std::optional<runtime::KokkosAlone> kokkos;
  if (!given.operations) kokkos.emplace(threads);
  const auto is_planned = [](const Launch& launch) { return !launch.refusal; };
  return plan::RateSource(given, std::ranges::find_if(all, is_planned)->config, threads, is_busy);
}

/// The ranks of a node in which a search looks for tensor groups.
Index searched_node_ranks(const PlanArguments& arguments, const GivenMachine& machine) {
  if (machine) return machine->network.node_ranks;
  KZERO_REQUIRE(arguments.ranks.size() == 1, ExitCode::usage,
                "--search without --rates needs --ranks with one number of ranks");
  const Index ranks = arguments.ranks.front();
  return ceil_div(ranks, nodes_of(arguments, machine, ranks));
}

}  // namespace

GivenMachine machine_of(const PlanArguments& arguments) {
  if (arguments.machine.empty()) return std::nullopt;
  return plan::read_machine(
      load(arguments.machine, {.for_writer = std::chrono::seconds(0)}, "rates file"));
}

std::vector<Launch> tried_launches(const PlanArguments& arguments, const GivenMachine& machine) {
  const LaunchReader reader(arguments, machine);
  std::vector<Launch> found;
  if (arguments.tensor.empty()) found = reader.with_tensor_of_deck();
  for (const Index tensor : arguments.tensor)
    std::ranges::move(reader.with_tensor(tensor), std::back_inserter(found));
  const auto is_refused = [](const Launch& launch) { return launch.refusal.has_value(); };
  if (std::ranges::all_of(found, is_refused)) throw *found.front().refusal;
  return found;
}

std::vector<Launch> launches(const PlanArguments& arguments, const GivenMachine& machine) {
  std::vector<Launch> found = tried_launches(arguments, machine);
  for (const Launch& launch : found)
    if (launch.refusal) throw *launch.refusal;
  return found;
}

std::vector<Launch> searched_launches(const PlanArguments& arguments, const GivenMachine& machine) {
  if (!arguments.tensor.empty()) return launches(arguments, machine);
  const LaunchReader reader(arguments, machine);
  std::vector<Launch> found;
  std::optional<Error> first_refusal;
  const Index node_ranks = searched_node_ranks(arguments, machine);
  for (Index tensor = 1; tensor <= node_ranks; ++tensor) {
    if (node_ranks % tensor != 0) continue;
    for (Launch& launch : reader.with_tensor(tensor)) {
      if (!launch.refusal)
        found.push_back(std::move(launch));
      else if (!first_refusal)
        first_refusal = launch.refusal;
    }
  }
  if (found.empty()) throw *first_refusal;
  return found;
}

Estimator::Estimator(const PlanArguments& arguments, const GivenMachine& machine,
                     const std::vector<Launch>& all)
    : machine_(machine), tokens_(arguments.tokens), tensor_overlap_(arguments.tensor_overlap) {
  if (!machine_) source_ = measured_rates(arguments.rates, all);
}

std::pair<plan::Rates, plan::Network> Estimator::rates_of(const plan::Entry& entry) const {
  if (machine_)
    return {machine_->rates_for(entry.precision, entry.width, entry.rows()), machine_->network};
  const plan::Rates rates = source_->of_rank(entry.threads, core_share(entry));
  return {rates, plan::uniform_network(rates.sent_bytes)};
}

void Estimator::add_to(plan::Entry& entry, Index nodes) const {
  if (!has_rates()) return;
  if (machine_ && nodes > 1) machine_->require_network(nodes);
  for (plan::StepOutline& outline : entry.outlines) outline.tensor_overlaps = tensor_overlap_;
  const auto [rates, network] = rates_of(entry);
  entry.estimate = plan::estimate(entry, rates, network);
  if (machine_) entry.machine = machine_->name;
  if (source_) entry.notes = source_->warnings();
  if (machine_) entry.notes = {machine_->extrapolation(entry.width)};
  std::erase(entry.notes, "");
  if (tokens_ == 0) return;
  KZERO_REQUIRE(
      entry.phases.empty(), ExitCode::usage,
      "--tokens needs steps of one size, but the deck has [[train.phase]]; its run of all "
      "train.steps reads {} tokens",
      entry.run_tokens);
  entry.campaign =
      plan::campaign({.seconds = entry.estimate->seconds(),
                      .tokens = static_cast<double>(entry.tokens),
                      .checkpoint_bytes = entry.checkpoint_bytes},
                     nodes, machine_ ? machine_->site : plan::Site{}, static_cast<double>(tokens_));
}

std::vector<SpanRecord> Estimator::time_line(const plan::Entry& entry) const {
  const auto [rates, network] = rates_of(entry);
  return plan::time_line(entry, rates, network);
}

}  // namespace kzero::app
