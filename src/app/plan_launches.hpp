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
  runtime::Threads threads;
};

using GivenMachine = std::optional<plan::Machine>;

/// Reads the file of --rates, only once: it may be a pipe.
GivenMachine machine_of(const PlanArguments& arguments);

/// The launches of all numbers of ranks or nodes and of tensor ranks. Throws Error(usage).
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

  /// Adds the estimate, and the campaign of --tokens.
  void add_to(plan::Entry& entry, Index nodes) const;

  /// The time line of the estimated step. Needs rates.
  std::vector<SpanRecord> time_line(const plan::Entry& entry) const;

 private:
  /// The rates of a rank, and its network. Needs a machine or rates.
  std::pair<plan::Rates, plan::Network> rates_of(const plan::Entry& entry) const;

  std::optional<plan::RateSource> source_;
  GivenMachine machine_;
  Index tokens_;
};

}  // namespace kzero::app
