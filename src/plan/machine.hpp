// A machine described by a file: the speed of its ranks by precision and shape of the model, and
// its two-level network.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "deck/document.hpp"
#include "plan/campaign.hpp"
#include "plan/network.hpp"
#include "plan/plan.hpp"

namespace kzero::plan {

struct Machine {
  std::string name;       // of the machine file
  double operations = 0;  // per rank and second, in precisions without their own; or 0
  std::map<Dtype, double> operations_in;  // per rank and second, by precision
  std::map<Index, double> attained;       // fraction of them, above 0, by model.hidden; empty: 1
  double half_rows = 0;                   // rows of a micro-batch at which half of it is attained
  double memory_bytes = 0;                // per rank and second, read plus written
  std::optional<double> rank_memory;      // bytes; empty: the file does not say
  HostRates host;                         // of a rank with a device
  double host_memory = 0;                 // bytes of the host for a rank's offloads
  Network network;
  std::optional<deck::CommunicatorKind> communicator;  // empty: the file does not say
  Site site;

  /// Returns the fraction at a width: linear between the given widths, constant outside.
  double attained_at(Index width) const;

  /// Returns the operations per second in a precision. Throws Error(usage) if the file has none.
  double operations_at(Dtype precision) const;

  /// The rates of a rank for a model's width and precision, in micro-batches of `rows` tokens that
  /// the rank computes together. Throws Error(usage) if the file has no rate for the precision.
  Rates rates_for(Dtype precision, Index width, Index rows) const;

  /// Throws Error(usage) if the file does not say how fast `nodes` nodes send to each other.
  void require_network(Index nodes) const;

  /// Returns why the rates for this width are a guess: no run of such a width is in [attained].
  /// Empty if they are not.
  std::string extrapolation(Index width) const;
};

/// Reads a machine from TOML. docs/planning.md lists the keys. Throws Error(usage) with one line
/// and location per problem.
Machine read_machine(const deck::Source& source);

}  // namespace kzero::plan
