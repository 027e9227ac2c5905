#include "plan/plan.hpp"

#include <algorithm>

#include "comm/placement.hpp"
#include "engine/expected_traffic.hpp"
#include "engine/memory_report.hpp"
#include "plan/work.hpp"

namespace kzero::plan {

namespace {

/// Computes the elements and bytes that a run is expected to send.
std::vector<metrics::TrafficRow> traffic_of(const deck::Config& config,
                                            const engine::Blueprint& blueprint) {
  auto rows = engine::expected_traffic(config, blueprint);
  for (metrics::TrafficRow& row : rows) {
    row.elements_per_step = row.expected_elements_per_step;
    row.bytes_per_step = row.expected_bytes_per_step;
    row.bytes_between_nodes_per_step = row.expected_bytes_between_nodes_per_step;
  }
  return rows;
}

/// Norms, for example, are replicated on every tensor rank. If there are fewer KV heads than ranks,
/// they are partly replicated.
Index copied_parameters(const engine::Blueprint& blueprint) {
  const Index last = blueprint.tensor.size - 1;
  Index copied = 0;
  for (const param::UnitSpec& unit : blueprint.definition->table({last, last + 1})) {
    for (const param::ParamSpec& p : unit.params) {
      if (!p.split.is_owned_by(last)) copied += p.held();
    }
  }
  return copied;
}

/// Who keeps sums of gradients between the micro-batches of several nodes: a value of
/// zero.gradients, but not "auto".
std::string keeps_sums(const zero::SumPlan& sums) {
  if (sums.nodes() == 1 || sums.rounds() == 1) return "";
  return sums.keeps() == zero::KeepsSums::nodes ? "node" : "rank";
}

Index frozen_bytes(const deck::Config& config, const engine::Blueprint& b) {
  Index elements = 0;
  for (std::size_t u = 0; u < b.table.size(); ++u) {
    const param::UnitLayout& unit = b.layout.units()[u];
    if (b.table[u].trains) continue;
    elements += b.stage.parameters == zero::Placement::replicated ? unit.padded
                                                                  : b.stage.copies * unit.shard;
  }
  return elements * bytes_of(config.train.precision);
}

/// Estimates the buffers of a group's two communicators, on a rank with `near` ranks of the group
/// on its node. Gathers use a ring. Sums receive from every other rank of the node; ranks of other
/// nodes share buffers. A connection has a buffer for each of NCCL's three protocols in each
/// channel. The sizes are NCCL 2.28's. The result was never compared with a GPU.
Index nccl_bytes_of(Index ranks, Index near) {
  if (ranks == 1) return 0;
  constexpr Index channels = 16;
  constexpr Index connection = (Index{4} << 20) + (Index{4800} << 10) + (Index{512} << 10);
  const Index senders = near - 1 + (ranks > near ? 1 : 0);
  return (1 + senders) * channels * connection;
}

/// The same of all groups of a rank. 0 if collectives are not NCCL's.
Index nccl_bytes(const deck::Config& config, const StepOutline& outline) {
  if (!outline.has_rings) return 0;
  const std::vector<int> data = comm::data_rank_nodes(config, 0);
  const std::vector<int>& all = config.placement.node_of_rank;
  const auto tensor_end = all.empty() ? all.end() : all.begin() + config.grid.tensor;
  const Index tensor =
      all.empty() ? config.grid.tensor : std::count(all.begin(), tensor_end, all.front());
  return nccl_bytes_of(config.grid.data, std::ranges::count(data, data.front())) +
         nccl_bytes_of(config.grid.tensor, tensor);
}

/// A run may read more tokens than an Index holds.
double tokens_of(Index steps, Index sequences, const deck::Config& config) {
  return static_cast<double>(steps) * static_cast<double>(sequences * config.model.sequence);
}

/// Plans each phase of a run as one of its own, and adds up their tokens.
void add_phases(const deck::Config& config, const engine::Blueprint& run, Index threads,
                const model::Family& family, Entry& entry) {
  entry.run_tokens = 0;
  deck::Config one = config;
  one.train.phases.clear();
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    one.train.global_batch = run.phases[i].batches.global_batch;
    const engine::Blueprint blueprint(one, one.grid.data, {0, one.grid.tensor}, family);
    const Index first = run.phases[i].first_step;
    const Index end = i + 1 < run.phases.size() ? run.phases[i + 1].first_step : config.train.steps;
    PlannedPhase phase{.first_step = first,
                       .steps = end - first,
                       .sequences = one.train.global_batch,
                       .micro_batches = blueprint.batches.micro_batches(),
                       .rounds = blueprint.batches.rounds()};
    for (const Index bytes : engine::planned_bytes(one, blueprint, threads))
      phase.total_bytes += bytes;
    for (const metrics::TrafficRow& row : traffic_of(one, blueprint))
      phase.sent_bytes += row.bytes_per_step;
    entry.run_tokens += tokens_of(phase.steps, phase.sequences, config);
    entry.phases.push_back(phase);
  }
}

}  // namespace

Index Entry::sent_bytes() const {
  Index sum = 0;
  for (const metrics::TrafficRow& row : traffic) sum += row.bytes_per_step;
  return sum;
}

double Entry::model_operations_per_second() const { return work.operations / estimate->seconds(); }

double Entry::operations_per_second() const {
  return (work.operations + work.recomputed_operations) / estimate->seconds();
}

double Entry::tokens_per_second() const {
  return static_cast<double>(tokens) / estimate->seconds();
}

double Entry::tokens_per_second_and_rank() const {
  return tokens_per_second() / static_cast<double>(ranks());
}

Entry plan(const deck::Config& config, Index threads, model::Family family) {
  const engine::Blueprint blueprint(config, config.grid.data, {0, config.grid.tensor}, family);
  const memory::Bytes held = engine::planned_bytes(config, blueprint, threads);
  Entry entry;
  entry.data_ranks = config.grid.data;
  entry.tensor_ranks = config.grid.tensor;
  entry.sequence_ranks = config.grid.sequence;
  entry.stage = config.zero.stage;
  entry.parameters = param::elements_of(blueprint.table);
  entry.trained_parameters = param::elements_of(blueprint.trained);
  entry.frozen_bytes = frozen_bytes(config, blueprint);
  entry.memory = engine::categories(held, {});
  entry.threads = threads;
  entry.layers = config.model.layers;
  entry.sequence = config.model.sequence;
  entry.micro_batch = config.train.micro_batch;
  entry.copied_parameters = copied_parameters(blueprint);
  entry.recompute = config.recompute;
  entry.precision = config.train.precision;
  entry.width = config.model.hidden;
  entry.tokens = config.train.global_batch * config.model.sequence;
  entry.run_tokens = tokens_of(config.train.steps, config.train.global_batch, config);
  if (!config.train.phases.empty()) add_phases(config, blueprint, threads, family, entry);
  entry.checkpoint_bytes =
      param::bytes_per_element(blueprint.state_arrays()) * entry.trained_parameters;
  entry.keeps_sums = keeps_sums(blueprint.sums);
  if (deck::distills(config.distill))
    entry.teacher_bytes = deck::teacher_position_bytes(config.distill.top);
  entry.traffic = traffic_of(config, blueprint);
  entry.work = work_of_step(config, blueprint, held, entry.sent_bytes());
  entry.outlines = outlines(config, blueprint);
  entry.nccl_bytes = nccl_bytes(config, entry.outlines.front());
  return entry;
}

}  // namespace kzero::plan
