#include "app/plan_command.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <set>
#include <span>

#include "app/plan_launches.hpp"
#include "base/bytes.hpp"
#include "comm/placement.hpp"
#include "plan/nominal.hpp"
#include "plan/report.hpp"
#include "plan/trace.hpp"
#include "run/trace_file.hpp"

namespace kzero::app {

namespace {

template <class Plans>
void print(const PlanArguments& arguments, const Plans& plans) {
  std::cout << (arguments.output == Output::json ? plan::json(plans) : plan::table(plans));
}

/// Which library's collectives are planned, and why.
std::string collectives_of(const Launch& launch, const GivenMachine& machine) {
  const bool is_nccl = comm::moves_by_itself(launch.config);
  const char* const library = is_nccl ? "NCCL" : "MPI";
  if (launch.config.zero.reduction == deck::ReductionOrder::library && !is_nccl)
    return "NCCL (zero.reduction = \"library\")";
  if (launch.has_files_communicator)
    return fmt::format("{} (network.communicator in {})", library, machine->name);
  if (launch.config.run.communicator != deck::CommunicatorKind::automatic)
    return fmt::format("{} (run.communicator)", library);
  return fmt::format("{} (run.communicator = \"auto\" in this build)", library);
}

/// Prints the assumptions of the tables that follow.
void introduce(const PlanArguments& arguments, const std::vector<Launch>& launches,
               const GivenMachine& machine) {
  if (arguments.output == Output::json) return;
  std::vector<const Launch*> all;
  for (const Launch& launch : launches)
    if (!launch.refusal) all.push_back(&launch);
  std::set<Index> counts, nodes;
  for (const Launch* launch : all) {
    counts.insert(launch->threads.count);
    nodes.insert(launch->nodes);
  }
  const Launch& first = *all.front();
  std::cout << fmt::format("deck        {}\nthreads     {} a rank, {}\n", arguments.deck.file,
                           fmt::join(counts, " or "), first.threads.origin);
  if (std::ranges::any_of(all, [](const Launch* launch) { return launch->ranks > 1; }))
    std::cout << fmt::format(
        "collectives {}{}\n", collectives_of(first, machine),
        arguments.tensor_overlap ? "; those of tensor groups overlap, which runs do not have" : "");
  if (*nodes.rbegin() == 1) return;
  const auto overlaps = [](const Launch* launch) {
    return comm::overlap_of(launch->config) == comm::Overlap::yes;
  };
  const auto count = std::ranges::count_if(all, overlaps);
  std::cout << fmt::format("nodes       {}, with zero.overlap {}\n", fmt::join(nodes, " or "),
                           count == 0 ? "off"
                           : count == static_cast<Index>(all.size())
                               ? "on"
                               : "on where messages leave nodes");
}

/// Writes the time line of the planned step: one rank and its links.
void write_time_line(const PlanArguments& arguments, const plan::Entry& entry,
                     const Estimator& estimator) {
  KZERO_REQUIRE(entry.estimate, ExitCode::usage, "--time-line needs rates: --tflops or --rates");
  run::require_trace_file(arguments.time_line);
  const std::vector<SpanRecord> spans = estimator.time_line(entry);
  const auto begin = [](const SpanRecord& span) { return span.begin; };
  const auto end = [](const SpanRecord& span) { return span.end; };
  run::TracedRank rank{.host = "planned",
                       .lanes = {"compute", "messages within the node", "messages between nodes",
                                 "copies between device and host"}};
  if (!spans.empty()) {
    rank.begin = std::ranges::min(spans, {}, begin).begin;
    rank.end = std::ranges::max(spans, {}, end).end;
  }
  run::TraceFile file(arguments.time_line, "a planned step", {rank});
  file.append(0, std::as_bytes(std::span(spans)));
  file.finish();
}

/// The entry of a launch that cannot be planned.
plan::Entry refused(const Launch& launch, const Error& reason) {
  plan::Entry entry;
  entry.data_ranks = launch.ranks;
  entry.refusal = reason.what();
  std::ranges::replace(entry.refusal, '\n', ' ');
  return entry;
}

/// Says by how much a plan exceeds the memory that the machine's file gives a rank.
std::string shortage_of(const plan::Entry& entry, const plan::Machine& machine) {
  const Index device = entry.device_bytes(), on_host = entry.total_bytes() - device;
  const auto exceeds = [](Index bytes, double memory) {
    return memory > 0 && static_cast<double>(bytes) > memory;
  };
  if (exceeds(device, machine.rank_memory.value_or(0)))
    return fmt::format("needs {} and has {} (rank.memory in {})", format_bytes(device),
                       format_bytes(static_cast<Index>(*machine.rank_memory)), machine.name);
  if (exceeds(on_host, machine.host_memory))
    return fmt::format("needs {} of its host and has {} (host.memory in {})", format_bytes(on_host),
                       format_bytes(static_cast<Index>(machine.host_memory)), machine.name);
  return "";
}

/// Plans and estimates the launches. Of several, those that cannot be planned have their reason.
std::vector<plan::Entry> planned(const std::vector<Launch>& all, const Estimator& estimator,
                                 const GivenMachine& machine) {
  std::vector<plan::Entry> entries;
  std::optional<Error> first_refusal;
  bool has_plan = false;
  for (const Launch& launch : all) {
    try {
      if (launch.refusal) throw *launch.refusal;
      plan::Entry entry = plan::plan(launch.config, launch.threads.count);
      estimator.add_to(entry, launch.nodes);
      if (machine) entry.shortage = shortage_of(entry, *machine);
      entries.push_back(std::move(entry));
      has_plan = true;
    } catch (const Error& error) {
      if (!first_refusal) first_refusal = error;
      entries.push_back(refused(launch, error));
    }
  }
  if (!has_plan) throw *first_refusal;
  return entries;
}

ExitCode plan_deck(const PlanArguments& arguments) {
  const GivenMachine machine = machine_of(arguments);
  const std::vector<Launch> all = tried_launches(arguments, machine);
  const Estimator estimator(arguments, machine, all);
  const std::vector<plan::Entry> entries = planned(all, estimator, machine);
  if (!arguments.time_line.empty()) {
    KZERO_REQUIRE(entries.size() == 1, ExitCode::usage,
                  "--time-line is of one launch, found {} launches", entries.size());
    write_time_line(arguments, entries.front(), estimator);
  }
  introduce(arguments, all, machine);
  print(arguments, entries);
  const auto fits = [](const plan::Entry& entry) {
    return entry.refusal.empty() && entry.shortage.empty();
  };
  if (std::ranges::any_of(entries, fits)) return ExitCode::done;
  const auto is_short = [](const plan::Entry& entry) { return !entry.shortage.empty(); };
  const std::string which = entries.size() == 1 ? "a rank" : "no launch fits: a rank of the first";
  fail(ExitCode::memory, "{} {}; kzero plan --fit SIZE lists settings that fit", which,
       std::ranges::find_if(entries, is_short)->shortage);
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
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (plan::Answer& answer : fits[i].answers) estimator.add_to(answer.entry, all[i].nodes);
    plan::sort(fits[i]);
    has_answer = has_answer || !fits[i].answers.empty();
  }
  introduce(arguments, all, machine);
  print(arguments, fits);
  KZERO_REQUIRE(has_answer, ExitCode::memory,
                "even one layer of this width needs more than {} a rank; a smaller "
                "train.micro_batch, model.hidden or model.vocab needs less",
                format_bytes(*arguments.fit));
  return ExitCode::done;
}

ExitCode search_deck(const PlanArguments& arguments) {
  const GivenMachine machine = machine_of(arguments);
  const auto memory = machine ? machine->rank_memory : std::nullopt;
  KZERO_REQUIRE(arguments.fit || memory, ExitCode::usage,
                "--search needs the memory of a rank: --fit, or rank.memory in {}",
                machine ? machine->name : "the file of --rates");
  const plan::Room room{.device = arguments.fit.value_or(static_cast<Index>(memory.value_or(0))),
                        .host = machine ? static_cast<Index>(machine->host_memory) : 0};
  const std::vector<Launch> all = searched_launches(arguments, machine);
  const Estimator estimator(arguments, machine, all);
  KZERO_REQUIRE(estimator.has_rates(), ExitCode::usage,
                "--search needs rates: --rates, or --tflops for a device");
  std::vector<plan::Proposal> found;
  for (const Launch& launch : all) {
    std::ranges::move(
        plan::proposals(launch.config, launch.ranks, launch.threads.count, room,
                        [&](plan::Entry& entry) { estimator.add_to(entry, launch.nodes); }),
        std::back_inserter(found));
  }
  KZERO_REQUIRE(!found.empty(), ExitCode::memory,
                "the deck needs more than {} a rank in every grid, stage and recompute.mode",
                format_bytes(room.device));
  plan::sort_by_time(found);
  introduce(arguments, all, machine);
  print(arguments, found);
  return ExitCode::done;
}

ExitCode plan_nominal(const PlanArguments& arguments) {
  KZERO_REQUIRE(arguments.deck.overrides.empty() && (arguments.parameters > 0 || arguments.fit),
                ExitCode::usage, "kzero plan needs a deck, or --parameters or --fit without one");
  std::vector<plan::Footprint> footprints;
  const auto plan_launch = [&](Index ranks, Index tensor) {
    KZERO_REQUIRE(ranks % tensor == 0, ExitCode::usage,
                  "--ranks must be a multiple of --tensor = {}, found {}", tensor, ranks);
    for (Index stage = arguments.stage.value_or(0); stage <= arguments.stage.value_or(3); ++stage) {
      const plan::Launch launch{ranks / tensor, tensor, stage};
      footprints.push_back(arguments.fit ? plan::largest_nominal(*arguments.fit, launch)
                                         : plan::nominal(arguments.parameters, launch));
    }
  };
  for (const Index tensor : arguments.tensor.empty() ? std::vector<Index>{1} : arguments.tensor) {
    const std::vector<Index> all = arguments.ranks.empty() ? std::vector{tensor} : arguments.ranks;
    for (const Index ranks : all) plan_launch(ranks, tensor);
  }
  print(arguments, footprints);
  const auto fits = [](const plan::Footprint& footprint) { return footprint.parameters > 0; };
  KZERO_REQUIRE(std::ranges::any_of(footprints, fits), ExitCode::memory,
                "no model fits in {} a rank", format_bytes(arguments.fit.value_or(0)));
  return ExitCode::done;
}

}  // namespace

ExitCode plan(const PlanArguments& arguments) {
  if (arguments.deck.file.empty()) return plan_nominal(arguments);
  if (arguments.output == Output::trace) return trace_deck(arguments);
  if (arguments.search) return search_deck(arguments);
  return arguments.fit ? fit_deck(arguments) : plan_deck(arguments);
}

}  // namespace kzero::app
