// A machine that is described by a file rather than measured: what its ranks attain by the model's
// width, and the two levels of its network.
#pragma once

#include <map>
#include <string>

#include "deck/document.hpp"
#include "plan/network.hpp"
#include "plan/plan.hpp"

namespace kzero::plan {

struct Machine {
  std::string name;                  // of the file
  double operations = 0;             // of a rank, per second
  std::map<Index, double> attained;  // share of them, above 0, by model.hidden; empty: all
  double memory_bytes = 0;           // of a rank, read plus written, per second
  Network network;

  /// Returns the share at a width: straight lines between the given widths, constant outside.
  double attained_at(Index width) const;

  /// Returns the rates of a plan's ranks. The rate of messages is the mean over the bytes of a
  /// step: a ring in each group, but an exchange between all where gradients are summed in rank
  /// order.
  Rates rates_of(const Entry& entry) const;
};

/// Reads a machine from TOML; docs/planning.md has the keys. Throws Error(usage) with one line for
/// every problem, each with its location.
Machine read_machine(const deck::Source& source);

}  // namespace kzero::plan
