#include "plan/trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "comm/placement.hpp"

namespace kzero::plan {

namespace {

using param::Operation;
using param::Value;
using param::ValueKind;
using Strings = std::vector<std::string>;

std::string name_of(const Value& value) {
  if (value.kind == ValueKind::parameters) return fmt::format("P{}", value.unit);
  const std::string base =
      value.kind == ValueKind::gradient ? fmt::format("G{}", value.unit) : value.name;
  return value.version > 0 ? fmt::format("{}.{}", base, value.version) : base;
}

std::string joined(const Strings& names) {
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, " "));
}

std::string names_of(const std::vector<Value>& values) {
  Strings names;
  for (const Value& value : values) names.push_back(name_of(value));
  return joined(names);
}

std::string units(const char* letter, const std::vector<Index>& units) {
  Strings names;
  for (const Index unit : units) names.push_back(fmt::format("{}{}", letter, unit));
  return joined(names);
}

/// Returns the operations whose results operation `at` reads.
std::string producers(const param::Trace& trace, std::size_t at) {
  Strings found;
  for (std::size_t i = 0; i < at; ++i) {
    const auto writes = [&](const Value& value) {
      return std::ranges::find(trace[i].writes, value) != trace[i].writes.end();
    };
    if (std::ranges::any_of(trace[at].reads, writes)) found.push_back(std::to_string(i));
  }
  return joined(found);
}

/// Which collectives may be in flight while the rank computes. Over NCCL gathers always may.
struct InFlight {
  bool gathers, reductions;

  explicit InFlight(const deck::Config& config)
      : gathers(comm::overlap_of(config) == comm::Overlap::yes || comm::moves_by_itself(config)),
        reductions(comm::overlap_of(config) == comm::Overlap::yes) {}
};

/// Returns the collectives that may be in flight while operation `at` runs. Of several units that
/// an operation completes, all but the last are reduced at once.
std::string beside(const zero::Schedule& schedule, std::size_t at, const InFlight& in_flight) {
  Strings found;
  const zero::ScheduleStep& step = schedule.steps()[at];
  for (const zero::BufferOffset& place : step.gathers) {
    if (in_flight.gathers && std::ranges::find(step.needs, place.unit) == step.needs.end())
      found.push_back(fmt::format("gather P{}", place.unit));
  }
  if (in_flight.reductions && at > 0 && !schedule.steps()[at - 1].complete.empty())
    found.push_back(fmt::format("reduce G{}", schedule.steps()[at - 1].complete.back()));
  return joined(found);
}

std::string line(const zero::Schedule& schedule, std::size_t at, const InFlight& in_flight) {
  const Operation& operation = schedule.trace()[at];
  const zero::ScheduleStep& step = schedule.steps()[at];
  std::vector<Index> gathered;
  for (const zero::BufferOffset& place : step.gathers) gathered.push_back(place.unit);
  return fmt::format("{:>4}  {:<8} {:>4}  {:<24} {:<18} {:<12} {:<12} {:<12} {:<10} {}\n", at,
                     name_of(operation.pass), operation.unit, names_of(operation.reads),
                     names_of(operation.writes), producers(schedule.trace(), at),
                     units("P", gathered), units("P", step.releases), units("G", step.complete),
                     beside(schedule, at, in_flight));
}

/// Lists the numbers and names of the first units and of the last.
std::string legend(const param::Table& table) {
  constexpr std::size_t shown = 3;
  Strings names;
  for (std::size_t u = 0; u < table.size(); ++u) {
    const bool is_last = u + 1 == table.size();
    if (u < shown || is_last) names.push_back(fmt::format("{} {}", u, table[u].name));
    if (u == shown && !is_last) names.emplace_back("...");
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Describes the end of a step, after its micro-batches, in execution order.
std::string end_of_step(const deck::Config& config, const engine::Blueprint& b,
                        const InFlight& in_flight) {
  std::string text = "once a step, all ranks: sum of the losses; sum of the squared gradients; ";
  if (!b.matrices.empty())
    text +=
        fmt::format("hidden matrices to their owners and back, in {} turns; ", b.matrices.rounds());
  const bool whole_update = b.stage.optimizer == zero::Placement::replicated;
  text += whole_update ? "every rank updates all parameters" : "each rank updates its shards";
  if (b.stage.gathers_updates()) {
    text += ", and each unit's updated parameters are gathered ";
    text += comm::moves_by_itself(config) ? "while the next is updated and the next step begins"
            : in_flight.gathers           ? "while the next is updated"
                                          : "before the next is updated";
  }
  if (b.stage.shared)
    text += "; the ranks of a node wait until all their shared parameters are new";
  return text + "; agreement on whether to stop\n";
}

}  // namespace

std::string trace(const deck::Config& config, const engine::Blueprint& b) {
  const InFlight in_flight(config);
  std::string text = fmt::format(
      "schedule of a micro-batch ({} a step, in turns), {} data-parallel ranks, ZeRO stage {}, "
      "prefetch_units {}, overlap {}\n"
      "P, G: parameters and gradient of a unit ({}); other names: activations; .n: version\n",
      b.batches.micro_batches(), b.layout.ranks(), config.zero.stage, config.zero.prefetch_units,
      in_flight.reductions ? "on" : "off", legend(b.table));
  text += fmt::format("{:>4}  {:<8} {:>4}  {:<24} {:<18} {:<12} {:<12} {:<12} {:<10} {}\n", "op",
                      "pass", "unit", "reads", "writes", "after", "gathers", "releases", "reduces",
                      "may overlap");
  for (std::size_t i = 0; i < b.training.trace().size(); ++i)
    text += line(b.training, i, in_flight);
  text += b.layout.ranks() == 1
              ? "one data-parallel rank: nothing is gathered or reduced\n"
              : "ranks meet: in every gather before its operation needs it, and in every "
                "reduction\n";
  if (b.tensor.size > 1) {
    text += fmt::format(
        "the {} ranks of a tensor group meet in every operation: sums and gathers "
        "of rows of activations\n",
        b.tensor.size);
  }
  return text + end_of_step(config, b, in_flight);
}

}  // namespace kzero::plan
