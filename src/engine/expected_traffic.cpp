#include "engine/expected_traffic.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "comm/placement.hpp"
#include "zero/bucket.hpp"

namespace kzero::engine {

namespace {

using Rows = std::vector<metrics::TrafficRow>;

/// Returns a * b. Throws if sums of such products could overflow.
Index times(Index a, Index b) {
  constexpr Index max = Index{1} << 58;
  Index product = 0;
  KZERO_REQUIRE(!__builtin_mul_overflow(a, b, &product) && product <= max, ExitCode::usage,
                "a rank would send more than {} elements or bytes a step, beyond what can be "
                "planned; a smaller train.global_batch, model.sequence or model need less",
                max);
  return product;
}

/// Returns the channel's row, appending it if it is missing.
metrics::TrafficRow& row_of(const std::string& group, comm::Operation operation,
                            comm::Purpose purpose, Rows& rows) {
  const auto same = [&](const metrics::TrafficRow& row) {
    return row.group == group && row.operation == name_of(operation) &&
           row.purpose == name_of(purpose);
  };
  const auto found = std::find_if(rows.begin(), rows.end(), same);
  if (found != rows.end()) return *found;
  return rows.emplace_back(
      metrics::TrafficRow{group, std::string(name_of(operation)), std::string(name_of(purpose))});
}

void expect(metrics::TrafficRow& row, Index elements, Index bytes, Index between_nodes = 0) {
  row.expected_elements_per_step = elements;
  row.expected_bytes_per_step = bytes;
  row.expected_bytes_between_nodes_per_step = between_nodes;
}

/// The copies of a reduction of all rounds.
Copies reduction_copies(const zero::SumPlan& sums, Index remote) {
  const Copies last = sum_copies(sums, sums.rounds() - 1, remote);
  const Copies each = sums.rounds() == 1 ? Copies{} : sum_copies(sums, 0, remote);
  const auto all = [&](Index Copies::*part) {
    return (sums.rounds() - 1) * each.*part + last.*part;
  };
  return {all(&Copies::within), all(&Copies::between), all(&Copies::between_fp32)};
}

// All stages reduce-scatter the gradients of all units. Stage 0 then all-gathers them. Stages 1 and
// 2 all-gather all parameters. Stage 3 gathers parameters as scheduled, unless nodes share them in
// memory, and only between nodes if nodes share gathered units. With a copy per node, it does so
// within nodes, and all-gathers the shards between nodes.
void add_data_group(const deck::Config& config, const Blueprint& blueprint, Index remote,
                    Rows& rows) {
  const Index ranks = blueprint.layout.ranks();
  if (ranks == 1) return;
  const zero::Stage& stage = blueprint.stage;
  const Index width = bytes_of(config.train.precision);
  const auto add = [&](comm::Operation operation, comm::Purpose purpose, Index shard,
                       const Copies& copies) {
    const Index narrow = times(shard, copies.within + copies.between);
    const Index wide = times(shard, copies.between_fp32);
    const Index wide_bytes = times(wide, bytes_of(Dtype::fp32));
    metrics::TrafficRow& row = row_of("data", operation, purpose, rows);
    expect(row, row.expected_elements_per_step + narrow + wide,
           row.expected_bytes_per_step + times(narrow, width) + wide_bytes,
           row.expected_bytes_between_nodes_per_step + times(times(shard, copies.between), width) +
               wide_bytes);
  };
  const Index owned = blueprint.trained_layout.owned_total();
  add(comm::Operation::reduce_scatter, comm::Purpose::gradients, owned,
      reduction_copies(blueprint.sums, remote));
  constexpr auto all_gather = comm::Operation::all_gather;
  if (stage.optimizer == zero::Placement::replicated)
    add(all_gather, comm::Purpose::gradients, owned, gather_copies(blueprint.sums, remote));
  if (stage.gathers_updates())
    add(all_gather, comm::Purpose::parameters, owned, update_copies(blueprint, remote));
  if (stage.gathers_parameters()) {
    const Index gathered = times(blueprint.batches.rounds(), blueprint.training.gathers() / ranks);
    add(all_gather, comm::Purpose::parameters, times(gathered, stage.copies),
        parameter_copies(blueprint, remote));
  }
}

/// Adds the model's collectives in a group, `count` times.
void add_model_group(const std::string& group, const std::vector<model::ModelCollective>& all,
                     Index count, Rows& rows) {
  for (const model::ModelCollective& collective : all) {
    metrics::TrafficRow& row = row_of(group, collective.operation, collective.purpose, rows);
    const Index elements = times(count, times(collective.count, collective.elements));
    row.expected_elements_per_step += elements;
    row.expected_bytes_per_step += times(elements, bytes_of(collective.dtype));
  }
}

void add_model(const deck::Config& config, const Blueprint& b, Index data_rank,
               std::span<const int> nodes, Rows& rows) {
  const MicroBatchRows micro = micro_batch_rows(config);
  const Dtype precision = config.train.precision;
  const Index ranks = config.grid.sequence, rounds = b.batches.rounds();
  add_model_group("tensor", b.definition->tensor_collectives(b.tensor, micro.chunk, precision),
                  times(rounds, micro.chunks), rows);
  add_model_group(
      "sequence",
      b.definition->sequence_collectives(b.tensor, {0, ranks, config.train.sequence_chunks},
                                         micro.chunk * micro.chunks, precision),
      rounds, rows);
  for (metrics::TrafficRow& row : rows) {
    if (row.group != "sequence") continue;
    row.expected_bytes_between_nodes_per_step = row.expected_bytes_per_step / (ranks - 1) *
                                                remote_sequence_ranks(b.batches, data_rank, nodes);
  }
}

/// Adds the transfers of the optimizer's matrices to their owners and back.
void add_matrices(const deck::Config& config, const Blueprint& blueprint, Index data_rank,
                  std::span<const int> nodes, Rows& rows) {
  const MatrixPlan& plan = blueprint.matrices;
  if (plan.empty()) return;
  const MatrixTraffic sent = traffic_of(plan, data_rank, nodes);
  const Index width = bytes_of(config.train.precision);
  const auto add = [&](const char* group, comm::Operation operation, Index elements,
                       Index between_nodes = 0) {
    expect(row_of(group, operation, comm::Purpose::matrices, rows), elements,
           times(elements, width), times(between_nodes, width));
  };
  if (plan.data_ranks() > 1) {
    if (plan.gathers())
      add("data", comm::Operation::gather, sent.gathered, sent.gathered_between_nodes);
    add("data", plan.gathers() ? comm::Operation::scatter : comm::Operation::broadcast,
        sent.returned, sent.returned_between_nodes);
  }
  if (plan.tensor_ranks() > 1) {
    add("tensor", comm::Operation::gather, sent.gathered_tensor);
    add("tensor", comm::Operation::scatter, sent.returned_tensor);
  }
}

}  // namespace

MicroBatchRows micro_batch_rows(const deck::Config& config) {
  const Index chunks = config.train.sequence_chunks;
  return {config.train.micro_batch * config.model.sequence / chunks, chunks / config.grid.sequence};
}

Index remote_sequence_ranks(const data::BatchPlan& plan, Index data_rank,
                            std::span<const int> nodes) {
  const NodeShape shape = plan.on_nodes();
  const Index first = shape.position_of(data_rank) / plan.sequence * plan.sequence;
  Index remote = 0;
  for (Index position = first; position < first + plan.sequence; ++position) {
    remote += nodes[shape.rank_of(position)] == nodes[data_rank] ? 0 : 1;
  }
  return remote;
}

Copies sum_copies(const zero::SumPlan& sums, Index round, Index remote) {
  if (sums.shape().by_library) return gather_copies(sums, remote);  // as it is counted
  if (sums.route() == zero::Route::terms)
    return {sums.own() * (sums.ranks() - 1 - remote), sums.own() * remote, 0};
  return {sums.ranks() - sums.nodes(), 0, sums.sends(round) ? sums.nodes() - 1 : 0};
}

Copies gather_copies(const zero::SumPlan& sums, Index remote) {
  const Index between = sums.nodes() > 1 ? sums.nodes() - 1 : remote;
  return {sums.ranks() - 1 - between, between, 0};
}

Copies parameter_copies(const Blueprint& b, Index remote) {
  if (b.stage.unit_ranks > 1) return {.between = b.sums.nodes() - 1};
  if (b.stage.copies == 1) return gather_copies(b.sums, remote);
  return {.within = b.layout.ranks() / b.stage.copies - 1};
}

Copies update_copies(const Blueprint& b, Index remote) {
  if (b.stage.copies == 1) return gather_copies(b.sums, remote);
  return {.between = b.stage.copies - 1};
}

Rows expected_traffic(const deck::Config& config, const Blueprint& blueprint, Index data_rank) {
  Rows rows;
  const std::vector<int> nodes = comm::data_rank_nodes(config, blueprint.tensor.rank);
  const Index remote =
      std::ranges::count_if(nodes, [&](int node) { return node != nodes[data_rank]; });
  add_data_group(config, blueprint, remote, rows);
  add_model(config, blueprint, data_rank, nodes, rows);
  add_matrices(config, blueprint, data_rank, nodes, rows);
  return rows;
}

Rows expected_traffic(const deck::Config& config, const Blueprint& blueprint,
                      std::span<const Index> steps, Index data_rank) {
  Blueprint each = blueprint;
  const Index all = std::accumulate(steps.begin(), steps.end(), Index{0});
  Rows sums;
  const auto add = [](Index& sum, Index count, Index value) { sum += times(count, value); };
  for (Index phase = 0; phase < std::ssize(steps); ++phase) {
    const Index count = steps[phase];
    if (count == 0) continue;
    each.enter(phase);
    Rows rows = expected_traffic(config, each, data_rank);
    if (count == all) return rows;
    if (sums.empty()) {
      sums = rows;
      for (metrics::TrafficRow& sum : sums) expect(sum, 0, 0, 0);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {  // every phase has the same channels
      add(sums[i].expected_elements_per_step, count, rows[i].expected_elements_per_step);
      add(sums[i].expected_bytes_per_step, count, rows[i].expected_bytes_per_step);
      add(sums[i].expected_bytes_between_nodes_per_step, count,
          rows[i].expected_bytes_between_nodes_per_step);
    }
  }
  for (metrics::TrafficRow& sum : sums) {
    expect(sum, sum.expected_elements_per_step / all, sum.expected_bytes_per_step / all,
           sum.expected_bytes_between_nodes_per_step / all);
  }
  return sums;
}

Rows counted(const comm::Traffic& traffic, Rows rows) {
  for (const auto& [channel, volume] : traffic.in_steps()) {
    metrics::TrafficRow& row = row_of(channel.group, channel.operation, channel.purpose, rows);
    row.elements_per_step = volume.elements / volume.steps;
    row.bytes_per_step = volume.bytes / volume.steps;
    row.bytes_between_nodes_per_step = volume.bytes_between_nodes / volume.steps;
  }
  return rows;
}

}  // namespace kzero::engine
