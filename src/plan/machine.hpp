// A machine described by a file: the speed of its ranks by model width, and its two-level network.
#pragma once

#include <map>
#include <string>

#include "deck/document.hpp"
#include "plan/campaign.hpp"
#include "plan/network.hpp"
#include "plan/plan.hpp"

namespace kzero::plan {

struct Machine {
  std::string name;                   // of the machine file
  double operations = 0;              // per rank and second
  std::map<Index, double> attained;   // fraction of them, above 0, by model.hidden; empty: 1
  double memory_bytes = 0;            // per rank and second, read plus written
  std::optional<double> rank_memory;  // bytes; empty: the file does not say
  HostRates host;                     // of a rank with a device
  double host_memory = 0;             // bytes of the host for a rank's offloads
  Network network;
  Site site;

  /// Returns the fraction at a width: linear between the given widths, constant outside.
  double attained_at(Index width) const;

  /// The rates of a rank for a model of this width.
  Rates rates_at(Index width) const;
};

/// Reads a machine from TOML. docs/planning.md lists the keys. Throws Error(usage) with one line
/// and location per problem.
Machine read_machine(const deck::Source& source);

}  // namespace kzero::plan
