// The launches that `kzero plan` plans, and the estimates of their steps.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "app/plan_command.hpp"
#include "base/timeline.hpp"
#include "plan/machine.hpp"
#include "runtime/threads.hpp"

namespace kzero::app {

/// One launch of the deck.
struct Launch {
  Index ranks = 1;
  Index nodes = 1;
  deck::Config config;  // resolved for it
  runtime::Threads threads{};
  bool has_files_communicator = false;  // run.communicator is that of the machine's file
  std::optional<Error> refusal{};       // the deck's objection; the config is then not resolved
};

using GivenMachine = std::optional<plan::Machine>;

/// Reads the file of --rates, only once: it may be a pipe.
GivenMachine machine_of(const PlanArguments& arguments);

/// The launches of all numbers of ranks or nodes and of tensor ranks. Those that the deck does not
/// allow have a refusal. Throws Error(usage) if it allows none.
std::vector<Launch> tried_launches(const PlanArguments& arguments, const GivenMachine& machine);

/// The same, but throws Error(usage) if the deck refuses one.
std::vector<Launch> launches(const PlanArguments& arguments, const GivenMachine& machine);

/// The launches of all tensor groups that fit into a node and that the deck's model accepts, or
/// those of --tensor. Throws Error(usage) if there are none.
std::vector<Launch> searched_launches(const PlanArguments& arguments, const GivenMachine& machine);

/// Estimates steps with the rates of a described machine, otherwise with given and measured rates.
class Estimator {
 public:
  Estimator(const PlanArguments& arguments, const GivenMachine& machine,
            const std::vector<Launch>& all);

  bool has_rates() const { return machine_ || source_; }

  /// Adds the estimate and its notes, and the campaign of --tokens. Throws Error(usage) if the
  /// machine's file has no rate for the entry's precision.
  void add_to(plan::Entry& entry, Index nodes) const;

  /// The time line of the estimated step. Needs rates.
  std::vector<SpanRecord> time_line(const plan::Entry& entry) const;

 private:
  /// The rates of a rank, and its network. Needs a machine or rates.
  std::pair<plan::Rates, plan::Network> rates_of(const plan::Entry& entry) const;

  std::optional<plan::RateSource> source_;
  GivenMachine machine_;
  Index tokens_;
  bool tensor_overlap_;
};

}  // namespace kzero::app
