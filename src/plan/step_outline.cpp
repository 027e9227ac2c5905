#include "plan/step_outline.hpp"

#include <algorithm>
#include <numeric>

#include "comm/placement.hpp"
#include "engine/expected_traffic.hpp"
#include "plan/work.hpp"
#include "zero/bucket.hpp"

namespace kzero::plan {

namespace {

using engine::Copies;

double number(Index n) { return static_cast<double>(n); }

/// Returns whether collectives are NCCL's. Its sums are the only ones that a library makes.
bool uses_nccl(const deck::Config& config) {
  return config.zero.reduction == deck::ReductionOrder::library || comm::moves_by_itself(config);
}

/// The messages over MPI whose latencies add up for this many bytes. Those of messages to other
/// nodes that are in flight at the same time overlap.
Index chunks(Index bytes, bool leaves_node) {
  return leaves_node ? ceil_div(bytes, comm::max_in_flight * comm::chunk_between_nodes)
                     : ceil_div(bytes, comm::chunk_within_node);
}

/// The nodes of a launch's ranks and of the data group.
struct Nodes {
  std::vector<int> of_rank, of_data_rank;

  /// The ranks of the data group on each node.
  std::vector<Index> members() const {
    std::vector<Index> counts(static_cast<std::size_t>(std::ranges::max(of_data_rank) + 1));
    for (const int node : of_data_rank) ++counts[node];
    return counts;
  }
  Index others(std::size_t data_rank) const {
    return std::ranges::count_if(of_data_rank,
                                 [&](int node) { return node != of_data_rank[data_rank]; });
  }
  /// The ranks on the node of a data rank. Data groups number their nodes from 0 as launches do.
  Index sharing(std::size_t data_rank) const {
    if (of_rank.empty()) return std::ssize(of_data_rank);
    return std::ranges::count(of_rank, of_data_rank[data_rank]);
  }
};

/// Builds the collectives of a data group from the copies that expected_traffic counts.
class DataGroup {
 public:
  DataGroup(const deck::Config& config, const engine::Blueprint& blueprint, const Nodes& nodes,
            std::size_t data_rank)
      : b_(blueprint),
        nodes_(std::ssize(nodes.members())),
        remote_(nodes.others(data_rank)),
        width_(bytes_of(config.train.precision)),
        has_rings_(uses_nccl(config)),
        overlap_(comm::overlap_of(config)),
        slice_(bucket_of(config).slice()),
        slots_(bucket_of(config).slots()) {}

  Index slots() const { return b_.sums.shape().by_library ? 1 : slots_; }

  /// A gather of a unit's parameters before an operation, and of the updated ones.
  Collective gather(Index shard) const {
    return part_or_all(shard * b_.stage.copies, engine::parameter_copies(b_, remote_));
  }
  Collective update_gather(Index shard) const {
    return part_or_all(shard, engine::update_copies(b_, remote_));
  }

  UnitSum sum(Index unit, Index round, bool gathers) const {
    const Index shard = b_.trained_layout.unit(unit).shard;
    if (shard == 0) return {};
    if (b_.sums.shape().by_library)
      return {.slices = 1, .exchange = ring(shard), .gather = gathers ? ring(shard) : Collective{}};
    const Copies copies = engine::sum_copies(b_.sums, round, remote_);
    UnitSum sum{.slices = ceil_div(shard, slice_)};
    if (b_.sums.route() == zero::Route::terms) {
      sum.exchange = exchange(shard, sum.slices, copies.within, copies.between, width_, 1);
    } else {
      sum.collect = exchange(shard, sum.slices, copies.within, 0, width_, b_.sums.nodes());
      sum.exchange = exchange(shard, sum.slices, 0, copies.between_fp32, bytes_of(Dtype::fp32), 1);
    }
    if (gathers && has_rings_ && sum.slices == 1) {
      sum.gather = ring(shard);
    } else if (gathers) {
      sum.gather = gather_in_parts(shard, sum.slices);
    }
    return sum;
  }

  /// Elements sent to owners of matrices or back, `messages` of them.
  Collective matrices(Index elements, Index between, Index messages) const {
    const Index peers = std::max<Index>(1, b_.layout.ranks() - 1);
    Collective all{.pattern = has_rings_ ? Pattern::exchange : Pattern::swaps,
                   .within = number((elements - between) * width_),
                   .between = number(between * width_)};
    const bool leaves = nodes_ > 1;
    const double count =
        has_rings_
            ? number(messages)
            : number(messages * peers * chunks(elements * width_ / peers / messages, leaves));
    (leaves ? all.between_messages : all.within_messages) = count;
    return all;
  }

 private:
  zero::Bucket bucket_of(const deck::Config& config) const {
    memory::Arenas measured;
    return {measured,          config.zero.bucket, config.train.precision,
            b_.trained_layout, overlap_,           b_.sums};
  }

  /// Returns the messages in which MPI sends one peer all slices of a shard.
  Index messages(Index shard, Index slices, Index width, bool leaves_node) const {
    const Index each = slices == 1 ? shard : slice_;
    return (slices - 1) * chunks(each * width, leaves_node) +
           chunks((shard - (slices - 1) * each) * width, leaves_node);
  }

  /// One slice of a shard for each of this many ranks, in `calls` collectives over NCCL.
  Collective exchange(Index shard, Index slices, Index within, Index between, Index width,
                      Index calls) const {
    const double bytes = number(shard * width) / number(slices);
    Collective one{.pattern = has_rings_ ? Pattern::exchange : Pattern::swaps,
                   .within = number(within) * bytes,
                   .between = number(between) * bytes};
    if (has_rings_) {
      if (within + between > 0)
        (between > 0 ? one.between_messages : one.within_messages) = number(calls);
      return one;
    }
    const auto each = [&](bool leaves_node) {
      return number(messages(shard, slices, width, leaves_node)) / number(slices);
    };
    one.within_messages = number(within) * each(false);
    one.between_messages = number(between) * each(true);
    return one;
  }

  /// A gather among all ranks, or among some: with a copy of the parameters per node, and if nodes
  /// share gathered units.
  Collective part_or_all(Index elements, const Copies& copies) const {
    if (b_.stage.copies > 1 || b_.stage.unit_ranks > 1)
      return exchange(elements, 1, copies.within, copies.between, width_, 1);
    return has_rings_ ? ring(elements) : gather_in_parts(elements, 1);
  }

  /// A gather of slices by pairwise messages, between nodes and then within them.
  Collective gather_in_parts(Index shard, Index slices) const {
    const Copies copies = engine::gather_copies(b_.sums, remote_);
    Collective one = exchange(shard, slices, copies.within, copies.between, width_, 1);
    if (has_rings_ && b_.sums.nodes() > 1 && b_.sums.node_ranks() > 1) {
      one.pattern = Pattern::swaps;
      one.within_messages = number(b_.sums.nodes());
    }
    return one;
  }

  /// A value passes size - 1 hops. A ring enters each node once.
  Collective ring(Index shard) const {
    const Copies copies = engine::gather_copies(b_.sums, remote_);
    const Index hops = copies.within + copies.between;
    const double between = nodes_ > 1 ? number(std::min(hops, nodes_)) : 0;
    return {.pattern = Pattern::ring,
            .within = number(copies.within * shard * width_),
            .between = number(copies.between * shard * width_),
            .within_messages = number(hops) - between,
            .between_messages = between};
  }

  const engine::Blueprint& b_;
  Index nodes_;  // of the group
  Index remote_, width_;
  bool has_rings_;
  comm::Overlap overlap_;
  Index slice_, slots_;
};

/// Returns each operation with its share of a micro-batch's arithmetic, as the trace tells it.
std::vector<OutlinedOperation> outlined(const deck::Config& config, const engine::Blueprint& b) {
  const zero::Schedule& schedule = b.training;
  const Index rows = config.train.micro_batch * config.model.sequence / config.grid.sequence;
  const Index own = config.recompute.partition ? ceil_div(rows, config.grid.tensor) : rows;
  const double kept_bytes = number(own * bytes_of(config.train.precision));
  std::vector<OutlinedOperation> all;
  double work = 0, recomputed = 0;
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    const param::Operation& operation = schedule.trace()[i];
    const zero::ScheduleStep& step = schedule.steps()[i];
    OutlinedOperation next{
        .work = operation.work.operations,
        .recomputed = operation.work.recomputed + operation.work.recomputed_elements,
        .kept_bytes = operation.work.kept * kept_bytes,
        .needs = step.needs,
        .complete = step.complete,
        .pass = operation.pass,
        .unit = operation.unit};
    for (const zero::BufferOffset& place : step.gathers) next.gathers.push_back(place.unit);
    work += next.work;
    recomputed += next.recomputed;
    all.push_back(std::move(next));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].work /= work > 0 ? work : 1;
    all[i].recomputed = recomputed > 0 ? all[i].recomputed / recomputed : all[i].work;
    // Backward runs the units in descending order.
    all[i].has_kept_before =
        all[i].pass == param::Pass::backward && i + 1 < all.size() && all[i + 1].kept_bytes > 0;
  }
  return all;
}

/// Sums are exchanges, and an all-reduce is a sum and a gather of as many bytes. Runs `times` all
/// collectives of a group with this many peers.
GroupTraffic group_traffic(const std::vector<model::ModelCollective>& all, Index times, Index peers,
                           bool nccl) {
  GroupTraffic sum;
  for (const model::ModelCollective& one : all) {
    const Index width = bytes_of(one.dtype);
    const double gathered = one.operation == comm::Operation::all_gather   ? 1
                            : one.operation == comm::Operation::all_reduce ? 0.5
                                                                           : 0;
    const double count = number(times * one.count), bytes = count * number(one.elements * width);
    sum.gathered += gathered * bytes;
    sum.exchanged += (1 - gathered) * bytes;
    const double phases = gathered == 0.5 ? 0.5 : 1;
    const double in_chunks = number(
        peers * chunks(static_cast<Index>(phases * number(one.elements * width / peers)), false));
    if (gathered > 0) sum.hops += count * (nccl ? number(peers) : in_chunks);
    if (gathered < 1) sum.exchanges += count * (nccl ? 1 : in_chunks);
  }
  return sum;
}

/// Outlines the model's collectives of a micro-batch.
void add_model_traffic(const deck::Config& config, const engine::Blueprint& b, StepOutline& o) {
  const engine::MicroBatchRows micro = engine::micro_batch_rows(config);
  const Dtype precision = config.train.precision;
  const Index sequence = config.grid.sequence;
  o.tensor_per_micro_batch =
      group_traffic(b.definition->tensor_collectives(b.tensor, micro.chunk, precision),
                    micro.chunks, b.tensor.size - 1, o.has_rings);
  o.sequence_per_micro_batch = group_traffic(
      b.definition->sequence_collectives(b.tensor, {0, sequence, config.train.sequence_chunks},
                                         micro.chunk * micro.chunks, precision),
      1, sequence - 1, o.has_rings);
}

MatrixTurns matrix_turns(const engine::Blueprint& b, const DataGroup& group, Index data_rank,
                         std::span<const int> nodes, Index width) {
  const engine::MatrixPlan& plan = b.matrices;
  if (plan.empty()) return {};
  const engine::MatrixTraffic sent = engine::traffic_of(plan, data_rank, nodes);
  MatrixTurns turns{.rounds = plan.rounds()};
  const auto of_round = [&](Collective all) {
    for (double* part : {&all.within, &all.between, &all.within_messages, &all.between_messages})
      *part /= number(turns.rounds);
    return all;
  };
  const Index calls = turns.rounds * plan.tensor_ranks();
  if (plan.data_ranks() > 1) {
    if (plan.gathers())
      turns.gather = of_round(group.matrices(sent.gathered, sent.gathered_between_nodes, calls));
    turns.back = of_round(group.matrices(sent.returned, sent.returned_between_nodes, calls));
  }
  if (plan.tensor_ranks() > 1) {
    turns.tensor = {.exchanged = number((sent.gathered_tensor + sent.returned_tensor) * width),
                    .exchanges = 2 * number(turns.rounds * (plan.tensor_ranks() - 1))};
  }
  return turns;
}

HostUpdate host_update(const deck::Config& config, const engine::Blueprint& b) {
  if (!engine::offloads(config)) return {};
  constexpr Index buffers = 4;  // of optim::CpuOffloadOptimizer, which share a bucket
  return {.bytes = number(updated_elements(b) * bytes_of(config.train.precision)),
          .part_bytes = number(config.zero.bucket / buffers)};
}

std::vector<double> update_shares(const engine::Blueprint& b) {
  std::vector<double> shares;
  for (const param::UnitLayout& unit : b.trained_layout.units())
    shares.push_back(number(unit.elements));
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= all;
  return shares;
}

StepOutline outline(const deck::Config& config, const engine::Blueprint& b, const Nodes& nodes,
                    std::size_t data_rank) {
  const Index ranks = config.grid.data * config.grid.tensor;
  StepOutline o;
  o.data = {ranks, config.grid.data, config.grid.tensor};
  o.tensor = {ranks, config.grid.tensor, 1};
  o.sequence = {ranks, config.grid.sequence, config.grid.tensor};
  o.node_ranks = nodes.of_rank.empty() ? ranks : std::ranges::count(nodes.of_rank, 0);
  o.sharing = nodes.of_rank.empty() ? ranks : nodes.sharing(data_rank);
  o.rounds = b.batches.rounds();
  const DataGroup group(config, b, nodes, data_rank);
  o.has_rings = uses_nccl(config);
  o.reductions_overlap = comm::overlap_of(config) == comm::Overlap::yes;
  o.in_flight = o.has_rings || o.reductions_overlap;
  o.device_sums = o.has_rings;
  o.slots = group.slots();
  o.operations = outlined(config, b);
  o.updates = update_shares(b);
  o.host_update = host_update(config, b);
  add_model_traffic(config, b, o);
  o.matrices = matrix_turns(b, group, static_cast<Index>(data_rank), nodes.of_data_rank,
                            bytes_of(config.train.precision));
  if (b.layout.ranks() == 1) return o;
  const bool gathers_sums = b.stage.optimizer == zero::Placement::replicated;
  for (Index u = 0; u < std::ssize(b.layout.units()); ++u) {
    const Index shard = b.layout.unit(u).shard;
    o.gathers.push_back(group.gather(shard));
    if (b.stage.gathers_updates())
      o.update_gathers.push_back(b.table[u].trains ? group.update_gather(shard) : Collective{});
    o.last_sums.push_back(group.sum(u, b.sums.rounds() - 1, gathers_sums));
    if (b.adds_reduced) o.sums.push_back(group.sum(u, 0, false));
  }
  return o;
}

}  // namespace

std::vector<StepOutline> outlines(const deck::Config& config, const engine::Blueprint& blueprint) {
  const Nodes nodes{config.placement.node_of_rank,
                    comm::data_rank_nodes(config, blueprint.tensor.rank)};
  std::vector<StepOutline> all{outline(config, blueprint, nodes, 0)};
  if (config.placement.node_of_rank.empty() || config.placement.data_nodes > 0) return all;
  const std::vector<Index> members = nodes.members();
  const Index smallest = std::ranges::min(members);
  const auto on_smallest = [&](int node) { return members[node] == smallest; };
  const auto loneliest = std::ranges::find_if(nodes.of_data_rank, on_smallest);
  all.push_back(outline(config, blueprint, nodes,
                        static_cast<std::size_t>(loneliest - nodes.of_data_rank.begin())));
  return all;
}

}  // namespace kzero::plan
