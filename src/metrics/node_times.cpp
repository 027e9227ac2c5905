#include "metrics/node_times.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kzero::metrics {

namespace {

constexpr std::size_t max_lines = 6;  // of a table; further rows are summarized
constexpr std::size_t busiest_lines = 3;

std::string table_line(const std::string& name, double compute, double wait, double steps) {
  return fmt::format("\n  {:<28}{:>12}{:>12}", name, format_step_seconds(compute / steps),
                     format_step_seconds(wait / steps));
}

}  // namespace

std::string name_of(const NodeRow& row, bool by_rank) {
  return by_rank ? fmt::format("rank {}", row.first_rank) : row.host;
}

std::string format_step_seconds(double seconds) {
  const int decimals = seconds >= 100    ? 0
                       : seconds >= 10   ? 1
                       : seconds >= 0.1  ? 2
                       : seconds >= 0.01 ? 3
                                         : 4;
  return fmt::format("{:.{}f} s", seconds, decimals);
}

std::string node_table(const NodesRecord& record) {
  const auto steps = static_cast<double>(record.steps);
  const char* const what = record.by_rank ? "ranks" : "nodes";
  std::string text =
      fmt::format("{:<30}{:>12}{:>12}", fmt::format("time of a step, {} {}", record.count, what),
                  "computes", "waits");
  const auto all = static_cast<std::size_t>(record.count);
  const std::size_t shown =
      all <= max_lines ? record.rows.size() : std::min(busiest_lines, record.rows.size());
  double compute = record.compute.mean * static_cast<double>(record.count);
  double wait = record.wait.mean * static_cast<double>(record.count);
  for (std::size_t i = 0; i < shown; ++i) {
    const NodeRow& row = record.rows[i];
    text += table_line(name_of(row, record.by_rank), row.compute_seconds, row.wait_seconds, steps);
    compute -= row.compute_seconds;
    wait -= row.wait_seconds;
  }
  if (shown == all) return text;
  const auto others = static_cast<double>(all - shown);
  return text + table_line(fmt::format("mean of the other {}", all - shown), compute / others,
                           wait / others, steps);
}

}  // namespace kzero::metrics
