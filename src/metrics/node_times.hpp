// The time that nodes spent computing and waiting in some steps, as plain values. The metrics file
// and the console use the same values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::metrics {

/// One node's time in the steps of an interval. A run on a single node has one row per rank
/// instead.
struct NodeRow {
  std::string host{};
  Index first_rank = 0;        // the lowest of the row's ranks
  Index ranks = 1;             // of the row
  double compute_seconds = 0;  // mean over the ranks: time in steps, without wait_seconds
  double wait_seconds = 0;     // mean over the ranks: waited for messages of other ranks
  double no_core_seconds = 0;  // mean over the ranks: part of wait_seconds ready without a core
  Index busiest_rank = 0;      // the row's rank that computed longest
  double busiest_seconds = 0;  // its compute seconds
  bool slow = false;           // the others wait for it more than run.slow_node_share allows
};

/// Minimum, mean and maximum of a value over rows.
struct Spread {
  double min = 0;
  double mean = 0;
  double max = 0;
};

/// The rows of an interval of steps. If there are more than max_node_rows, only those that
/// computed longest are listed.
struct NodesRecord {
  Index step = 0;                  // steps done at the interval's end
  Index steps = 0;                 // of the interval
  double seconds = 0;              // of these steps, mean over all ranks
  std::optional<double> joules{};  // measured since the last record, of all ranks together
  bool by_rank = false;
  Index count = 0;  // rows before any were left out
  Spread compute{}, wait{};
  std::vector<NodeRow> rows{};  // the busiest first
};

inline constexpr Index max_node_rows = 16;

/// Formats a row's name: "node1", or "rank 3" where rows are ranks.
std::string name_of(const NodeRow& row, bool by_rank);

/// Formats seconds of a step for people: "1.96 s", "0.034 s".
std::string format_step_seconds(double seconds);

/// Formats the closing table of a run: the seconds of a step that each row computed and waited.
/// Lists the busiest rows and, if there are many, the mean of the others. The record must have
/// steps.
std::string node_table(const NodesRecord& record);

}  // namespace kzero::metrics
