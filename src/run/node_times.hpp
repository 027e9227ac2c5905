// Measures how long this rank computes and how long it waits for others in each step. Reports the
// times of all ranks by node: in the metrics, as lines about slow nodes, and as a table at the end.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "base/waited.hpp"
#include "engine/engine.hpp"
#include "metrics/console.hpp"
#include "metrics/jsonl_sink.hpp"
#include "run/energy.hpp"
#include "run/node_groups.hpp"
#include "run/slow_nodes.hpp"

namespace kzero::run {

/// The minimum length of an interval between reports.
struct MinInterval {
  double seconds = 10;  // of steps: long enough for meaningful means
  Index steps = 3;
};

class NodeTimes {
 public:
  /// `sink` is null if nothing is recorded. With `energy`, records have the joules since the last
  /// one, and nobody else may take them. All arguments except the deck must outlive the
  /// object. Collective over all ranks of the grid.
  NodeTimes(const deck::Config& config, const engine::Machinery& machinery,
            const engine::Blueprint& blueprint, metrics::Console& console, metrics::JsonlSink* sink,
            const MinInterval& min_interval = {}, EnergyMeter* energy = nullptr);

  /// Runs a step, adds its time, and returns its result. Not collective by itself.
  template <class F>
  auto step(const F& run) {
    ++interval_.steps;
    const Point begin = now();
    auto result = run();
    ++interval_.of_phases[blueprint_.phase];
    add_since(begin);
    return result;
  }

  /// Returns the maximum of `mine` >= 0 over all ranks. The same message tells the ranks whether a
  /// report is due, so most steps need no extra collective for reports. Collective over all ranks,
  /// between steps.
  Index agree(Index mine);

  /// Reports the steps since the last report if the root found a report due in the last agree().
  /// Collective over all ranks.
  void report_if_due(Index steps_done);

  /// Reports the remaining steps and prints the table of all steps. Collective over all ranks.
  void finish(Index steps_done);

 private:
  /// The steps of an interval and, on the root, the times of all ranks in them.
  struct Interval {
    Index steps = 0;
    std::vector<Index> of_phases{};  // the steps of each phase of the run
    std::vector<RankTime> times{};

    void add(const Interval& other);
  };

  /// A point in this rank's time.
  struct Point {
    std::chrono::steady_clock::time_point time;
    WaitedSeconds waited;
  };

  static Point now() { return {std::chrono::steady_clock::now(), seconds_waited()}; }
  void add_since(const Point& begin);
  bool is_due() const;
  void gather();
  void write(Index steps_done);

  std::vector<double> mean_operations() const;
  void begin_interval();

  const engine::Blueprint& blueprint_;
  const grid::Group& world_;
  comm::Communicator& data_;
  comm::Communicator& tensor_;
  metrics::Console& console_;
  metrics::JsonlSink* sink_;
  double share_;
  MinInterval min_interval_;
  EnergyMeter* energy_;
  std::vector<std::vector<double>> operations_;  // of each phase's steps, of each rank
  std::optional<NodeGroups> groups_;             // on the root, like slow_nodes_
  std::optional<SlowNodes> slow_nodes_;
  RankTime mine_;               // of this rank, since the last gather()
  Interval interval_;           // since the last gather()
  Interval unwritten_, total_;  // since the last record; since the start
  double written_ = 0;          // seconds of steps before the last record
  bool due_ = false;
};

}  // namespace kzero::run
