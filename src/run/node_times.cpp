#include "run/node_times.hpp"

#include <algorithm>
#include <chrono>

#include "comm/communicator.hpp"
#include "runtime/host_name.hpp"
#include "runtime/wall_time.hpp"

namespace kzero::run {

namespace {

// Records become rarer as a run gets longer. A week-long run has about 800.
constexpr double record_share = 0.01;  // least time between records, as a share of the time so far

/// Returns the number of operations that the deck assigns to this rank in a step of a phase.
double operations_of(const deck::Config& config, const engine::Blueprint& blueprint,
                     const data::BatchPlan& plan, const grid::ProcessGrid& grid) {
  Index sequences = 0;
  for (Index round = 0; round < plan.rounds(); ++round)
    sequences += plan.has(grid.data().rank(), round) ? plan.micro_batch : 0;
  return static_cast<double>(sequences * config.model.sequence) *
             model::flops_per_token(blueprint.training.trace()) /
             static_cast<double>(grid.tensor().size() * plan.sequence) +
         blueprint.matrices.operations(grid.data().rank(), grid.tensor().rank());
}

}  // namespace

NodeTimes::NodeTimes(const deck::Config& config, const engine::Machinery& machinery,
                     const engine::Blueprint& blueprint, metrics::Console& console,
                     metrics::JsonlSink* sink, const MinInterval& min_interval, EnergyMeter* energy)
    : blueprint_(blueprint),
      world_(machinery.grid.world()),
      data_(*machinery.data),
      tensor_(*machinery.tensor),
      console_(console),
      sink_(sink),
      share_(config.run.slow_node_share),
      min_interval_(min_interval),
      energy_(energy != nullptr && energy->is_on() ? energy : nullptr) {
  const std::vector<std::string> hosts = world_.gather(runtime::host_name());
  for (const engine::StepPlan& phase : blueprint.phases) {
    operations_.push_back(
        world_.all_gather(operations_of(config, blueprint, phase.batches, machinery.grid)));
  }
  begin_interval();
  if (!world_.is_root()) return;
  groups_.emplace(hosts);
  slow_nodes_.emplace(*groups_, operations_.front(), share_);
}

void NodeTimes::begin_interval() {
  interval_ = {};
  interval_.of_phases.resize(blueprint_.phases.size());
}

/// Returns the operations of each rank in a step, as the mean over the interval.
std::vector<double> NodeTimes::mean_operations() const {
  std::vector<double> mean(operations_.front().size());
  for (std::size_t phase = 0; phase < operations_.size(); ++phase) {
    const double share = static_cast<double>(interval_.of_phases[phase]) /
                         static_cast<double>(std::max<Index>(1, interval_.steps));
    for (std::size_t rank = 0; rank < mean.size(); ++rank)
      mean[rank] += share * operations_[phase][rank];
  }
  return mean;
}

void NodeTimes::add_since(const Point& begin) {
  const WaitedSeconds waited = seconds_waited() - begin.waited;
  const double on_device = data_.take_device_wait() + tensor_.take_device_wait();
  mine_ += {runtime::seconds_since(begin.time), waited.all + on_device, waited.without_core};
}

void NodeTimes::Interval::add(const Interval& other) {
  steps += other.steps;
  times.resize(other.times.size());
  for (std::size_t rank = 0; rank < times.size(); ++rank) times[rank] += other.times[rank];
}

bool NodeTimes::is_due() const {
  return world_.is_root() && interval_.steps >= min_interval_.steps &&
         mine_.seconds >= min_interval_.seconds;
}

Index NodeTimes::agree(Index mine) {
  const Point begin = now();
  // If any rank passes a value above 0, the run ends. The maximum may then lose the root's request
  // for a report, which does no harm.
  const Index agreed = world_.max(2 * mine + (is_due() ? 1 : 0));
  add_since(begin);
  due_ = agreed % 2 == 1;
  return agreed / 2;
}

/// Gathers the ranks' times since the last call into unwritten_ and total_.
void NodeTimes::gather() {
  if (energy_ != nullptr) mine_.joules = energy_->take();
  const std::vector<double> all =
      world_.all_gather({mine_.seconds, mine_.waited, mine_.no_core, mine_.joules});
  mine_ = {};
  interval_.times.clear();
  for (std::size_t i = 0; world_.is_root() && i < all.size(); i += 4)
    interval_.times.push_back({all[i], all[i + 1], all[i + 2], all[i + 3]});
  unwritten_.add(interval_);
  total_.add(interval_);
}

void NodeTimes::report_if_due(Index steps_done) {
  if (!due_) return;
  due_ = false;
  gather();
  if (world_.is_root()) {
    slow_nodes_->weigh(mean_operations());
    const auto lines = slow_nodes_->judge(interval_.times, interval_.steps);
    for (const std::string& line : lines) console_.note(line);
    const double since = unwritten_.times.front().seconds;
    if (!lines.empty() || since >= record_share * (written_ + since)) write(steps_done);
  }
  begin_interval();
}

void NodeTimes::write(Index steps_done) {
  if (sink_ != nullptr) {
    metrics::NodesRecord record =
        groups_->record(unwritten_.times, steps_done, unwritten_.steps, slow_nodes_->slow());
    if (energy_ != nullptr) {
      record.joules = 0;
      for (const RankTime& time : unwritten_.times) *record.joules += time.joules;
    }
    sink_->write(record);
  }
  written_ += unwritten_.times.front().seconds;
  unwritten_ = {};
}

void NodeTimes::finish(Index steps_done) {
  gather();
  begin_interval();
  if (!world_.is_root() || total_.steps == 0) return;
  if (unwritten_.steps > 0) write(steps_done);
  const metrics::NodesRecord record =
      groups_->record(total_.times, steps_done, total_.steps, slow_nodes_->slow());
  const bool is_uneven =
      share_ > 0 && record.compute.max - record.compute.mean > share_ * record.seconds;
  if (record.count > 1 && (!record.by_rank || is_uneven))
    console_.note(metrics::node_table(record));
}

}  // namespace kzero::run
