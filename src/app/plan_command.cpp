#include "app/plan_command.hpp"

#include <fmt/ranges.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>

#include "base/bytes.hpp"
#include "comm/placement.hpp"
#include "convert/architecture.hpp"
#include "deck/reader.hpp"
#include "model/definition.hpp"
#include "plan/machine.hpp"
#include "plan/nominal.hpp"
#include "plan/report.hpp"
#include "plan/step_time.hpp"
#include "plan/trace.hpp"
#include "runtime/threads.hpp"

namespace kzero::app {

namespace {

template <class Plans>
void print(const PlanArguments& arguments, const Plans& plans) {
  std::cout << (arguments.output == Output::json ? plan::json(plans) : plan::table(plans));
}

/// One launch of the deck.
struct Launch {
  Index ranks = 1;
  Index nodes = 1;
  deck::Config config;  // resolved for it
  runtime::Threads threads;
};

using GivenMachine = std::optional<plan::Machine>;

/// Reads the file of --rates only once: it may be a pipe.
GivenMachine machine_of(const PlanArguments& arguments) {
  if (arguments.machine.empty()) return std::nullopt;
  return plan::read_machine(load(arguments.machine, pipe_patience, "rates file"));
}

/// The nodes that a launch fills: the given number, or that of the machine that a file describes.
Index nodes_of(const PlanArguments& arguments, const GivenMachine& machine, Index ranks) {
  if (machine) return ceil_div(ranks, machine->network.node_ranks);
  KZERO_REQUIRE(arguments.nodes <= ranks, ExitCode::usage,
                "--nodes must be at most the number of ranks, {}, found {}", ranks,
                arguments.nodes);
  return std::max<Index>(1, arguments.nodes);
}

std::vector<Launch> launches(const PlanArguments& arguments, const GivenMachine& machine) {
  const deck::Source source = load(arguments.deck.file);
  std::vector<Launch> found;
  const auto plan_launches = [&](const std::vector<std::string>& overrides) {
    const auto read = [&](Index ranks) {
      return deck::read(source, overrides, {ranks, deck::Purpose::plan, model::parameter_names},
                        convert::read_architecture);
    };
    std::vector<Index> all = arguments.ranks;
    if (all.empty()) {
      const deck::Grid grid = read(0).grid;
      all = {std::max<Index>(1, grid.data) * grid.tensor};
    }
    for (const Index ranks : all) {
      deck::Config config = read(ranks);
      const Index nodes = nodes_of(arguments, machine, ranks);
      const Index node_ranks = ceil_div(ranks, nodes);
      config.placement = comm::placement_on(comm::filled_nodes(ranks, node_ranks), config, ranks);
      const Index asked = arguments.threads > 0 ? arguments.threads : config.run.threads;
      found.push_back({ranks, nodes, config, runtime::threads_per_rank(asked, node_ranks)});
    }
  };
  if (arguments.tensor.empty()) plan_launches(arguments.deck.overrides);
  for (const Index tensor : arguments.tensor) {
    std::vector<std::string> overrides = arguments.deck.overrides;
    overrides.push_back(fmt::format("grid.tensor={}", tensor));
    plan_launches(overrides);
  }
  return found;
}

/// Rates for every number of threads in the launches, measured with as many as this machine has
/// cores for. Empty if operations cannot be measured.
std::optional<plan::RateSource> measured_rates(const plan::GivenRates& given,
                                               const std::vector<Launch>& all) {
  if (!given.operations && !plan::can_measure_blocks()) return std::nullopt;
  Index threads = 1;
  for (const Launch& launch : all) threads = std::max(threads, launch.threads.count);
  threads = std::min(threads, runtime::usable_cores());
  std::optional<Kokkos::ScopeGuard> kokkos;
  if (!given.operations) {
    runtime::threads_of_environment();    // OpenMP starts this many, whatever number is requested
    setenv("OMP_PROC_BIND", "false", 0);  // as in a run
    kokkos.emplace(Kokkos::InitializationSettings()
                       .set_num_threads(static_cast<int>(threads))
                       .set_disable_warnings(true));
  }
  return plan::RateSource(given, all.front().config, threads);
}

/// Estimates steps with the rates of a described machine, otherwise with given and measured rates.
class Estimator {
 public:
  Estimator(const PlanArguments& arguments, const GivenMachine& machine,
            const std::vector<Launch>& all)
      : machine_(machine) {
    if (!machine_) source_ = measured_rates(arguments.rates, all);
  }

  void add_to(plan::Entry& entry) const {
    if (source_) {
      const plan::Rates rates = source_->of_rank(entry.threads);
      entry.estimate = plan::estimate(entry, rates, plan::uniform_network(rates.sent_bytes));
    }
    if (!machine_) return;
    entry.estimate = machine_->estimate_of(entry);
    entry.machine = machine_->name;
  }

 private:
  std::optional<plan::RateSource> source_;
  GivenMachine machine_;
};

/// Prints the assumptions of the tables that follow.
void introduce(const PlanArguments& arguments, const std::vector<Launch>& all) {
  if (arguments.output == Output::json) return;
  std::set<Index> counts;
  for (const Launch& launch : all) counts.insert(launch.threads.count);
  std::cout << fmt::format("deck        {}\nthreads     {} a rank, {}\n", arguments.deck.file,
                           fmt::join(counts, " or "), all.front().threads.origin);
  std::set<Index> nodes;
  for (const Launch& launch : all) nodes.insert(launch.nodes);
  if (*nodes.rbegin() == 1) return;
  const auto overlaps = [](const Launch& launch) {
    return comm::overlap_of(launch.config) == comm::Overlap::yes;
  };
  const auto count = std::ranges::count_if(all, overlaps);
  std::cout << fmt::format("nodes       {}, with zero.overlap {}\n", fmt::join(nodes, " or "),
                           count == 0 ? "off"
                           : count == static_cast<Index>(all.size())
                               ? "on"
                               : "on where messages leave nodes");
}

ExitCode plan_deck(const PlanArguments& arguments) {
  const GivenMachine machine = machine_of(arguments);
  const std::vector<Launch> all = launches(arguments, machine);
  std::vector<plan::Entry> entries;
  entries.reserve(all.size());
  for (const Launch& launch : all)
    entries.push_back(plan::plan(launch.config, launch.threads.count));
  const Estimator estimator(arguments, machine, all);
  for (plan::Entry& entry : entries) estimator.add_to(entry);
  introduce(arguments, all);
  print(arguments, entries);
  return ExitCode::done;
}

ExitCode trace_deck(const PlanArguments& arguments) {
  for (const Launch& launch : launches(arguments, std::nullopt)) {
    std::cout << plan::trace(
        launch.config,
        engine::Blueprint(launch.config, launch.config.grid.data, {0, launch.config.grid.tensor}));
  }
  return ExitCode::done;
}

ExitCode fit_deck(const PlanArguments& arguments) {
  const GivenMachine machine = machine_of(arguments);
  const std::vector<Launch> all = launches(arguments, machine);
  std::vector<plan::Fit> fits;
  fits.reserve(all.size());
  for (const Launch& launch : all)
    fits.push_back(plan::fit(launch.config, launch.ranks, launch.threads.count, *arguments.fit));
  const Estimator estimator(arguments, machine, all);
  bool has_answer = false;
  for (plan::Fit& fit : fits) {
    for (plan::Answer& answer : fit.answers) estimator.add_to(answer.entry);
    has_answer = has_answer || !fit.answers.empty();
  }
  introduce(arguments, all);
  print(arguments, fits);
  KZERO_REQUIRE(has_answer, ExitCode::memory,
                "nothing fits in {} a rank, not even one layer of this width; a smaller "
                "train.micro_batch, model.hidden or model.vocab needs less",
                format_bytes(*arguments.fit));
  return ExitCode::done;
}

ExitCode plan_nominal(const PlanArguments& arguments) {
  KZERO_REQUIRE(arguments.deck.overrides.empty() && (arguments.parameters > 0 || arguments.fit),
                ExitCode::usage, "kzero plan needs a deck, or --parameters or --fit without one");
  std::vector<plan::Holding> holdings;
  const auto plan_launch = [&](Index ranks, Index tensor) {
    KZERO_REQUIRE(ranks % tensor == 0, ExitCode::usage,
                  "--ranks must be a multiple of --tensor = {}, found {}", tensor, ranks);
    for (Index stage = arguments.stage.value_or(0); stage <= arguments.stage.value_or(3); ++stage) {
      const plan::Launch launch{ranks / tensor, tensor, stage};
      holdings.push_back(arguments.fit ? plan::largest_nominal(*arguments.fit, launch)
                                       : plan::nominal(arguments.parameters, launch));
    }
  };
  for (const Index tensor : arguments.tensor.empty() ? std::vector<Index>{1} : arguments.tensor) {
    const std::vector<Index> all = arguments.ranks.empty() ? std::vector{tensor} : arguments.ranks;
    for (const Index ranks : all) plan_launch(ranks, tensor);
  }
  print(arguments, holdings);
  const auto fits = [](const plan::Holding& holding) { return holding.parameters > 0; };
  KZERO_REQUIRE(std::ranges::any_of(holdings, fits), ExitCode::memory, "no model fits in {} a rank",
                format_bytes(arguments.fit.value_or(0)));
  return ExitCode::done;
}

}  // namespace

ExitCode plan(const PlanArguments& arguments) {
  if (arguments.deck.file.empty()) return plan_nominal(arguments);
  if (arguments.output == Output::trace) return trace_deck(arguments);
  return arguments.fit ? fit_deck(arguments) : plan_deck(arguments);
}

}  // namespace kzero::app
