#include "train/expected_traffic.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "zero/bucket.hpp"

namespace kzero::train {

namespace {

using Rows = std::vector<metrics::TrafficRow>;

/// a * b, as long as sums of such products stay in range.
Index times(Index a, Index b) {
  constexpr Index most = Index{1} << 58;
  Index product = 0;
  KZERO_REQUIRE(!__builtin_mul_overflow(a, b, &product) && product <= most, ExitCode::usage,
                "a rank would send more than {} elements or bytes a step, beyond what can be "
                "planned; a smaller train.global_batch, model.sequence or model need less",
                most);
  return product;
}

metrics::TrafficRow row(const char* group, const char* operation, const char* purpose,
                        Index elements, Index bytes) {
  return {group, operation, purpose, 0, 0, elements, bytes};
}

// A reduce-scatter and an all-gather of all units, of gradients in stage 0 and of parameters in
// stages 1 and 2; in stage 3 the gathers of the schedule.
void add_data_group(const deck::Config& config, const Blueprint& blueprint, Rows& rows) {
  const Index ranks = blueprint.layout.ranks();
  if (ranks == 1) return;
  const bool shards_parameters = blueprint.stage.parameters == zero::Placement::partitioned;
  const bool shards_state = blueprint.stage.optimizer == zero::Placement::partitioned;
  const Index all = zero::collective_elements(blueprint.layout.padded(), ranks);
  const Index reductions = blueprint.adds_reduced ? blueprint.micro_batches : 1;
  const Index gathers = shards_parameters
                            ? times(blueprint.micro_batches,
                                    zero::collective_elements(blueprint.training.gathers(), ranks))
                            : all;
  const Index width = bytes_of(config.train.precision);
  const Index reduced = times(reductions, all);
  rows.push_back(row("data", "reduce_scatter", "gradients", reduced, times(reduced, width)));
  rows.push_back(row("data", "all_gather", shards_state ? "parameters" : "gradients", gathers,
                     times(gathers, width)));
}

/// Elements that a rank of a group sends for a matrix of so many rows, which are cut over the
/// group.
struct Exchange {
  Index scatter = 0;  // to sum the others' rows
  Index gather = 0;   // to give its own rows to the others

  Exchange(const model::TensorRank& tensor, Index rows, Index width) {
    const Index own = part_size(rows, tensor.size, tensor.rank);
    scatter = (rows - own) * width;
    gather = own * (tensor.size - 1) * width;
  }
};

/// How often a micro-batch sums and gathers the residual stream. A block run again stops before its
/// last product, and the last block is not run again.
struct StreamTraffic {
  Index sums = 0;
  Index gathers = 0;  // in sequence parallelism, where a sum is only a reduce-scatter

  StreamTraffic(Index layers, deck::RecomputeMode mode) {
    const Index again = mode == deck::RecomputeMode::block ? layers - 1 : 0;
    sums = 1 + (2 + 2) * layers + again + 1;         // embedding, blocks, head
    gathers = (2 + 4) * layers + 2 * again + 1 + 1;  // blocks, head, embedding backward
  }
};

void add_tensor_group(const deck::Config& config, const Blueprint& blueprint, Rows& rows) {
  const model::TensorRank& tensor = blueprint.tensor;
  if (tensor.size == 1) return;
  const deck::Model& m = config.model;
  const Index tokens = config.train.micro_batch * m.sequence, batches = blueprint.micro_batches;
  const Exchange stream(tensor, tokens, m.hidden);
  const StreamTraffic passes(m.layers, config.recompute.mode);
  const Index width = bytes_of(config.train.precision);
  const auto add = [&](const char* operation, const char* purpose, Index elements, Index floats) {
    rows.push_back(row("tensor", operation, purpose, times(batches, elements + floats),
                       times(batches, times(elements, width) + times(floats, 4))));
  };
  // What a rank knows of each row's softmax, in fp32.
  const Index softmaxes = tokens * kernels::partial_softmax_width * (tensor.size - 1);
  if (m.sequence_parallel) {
    const Exchange norm(tensor, 2 * m.hidden, 1);  // a LayerNorm's gradients
    add("reduce_scatter", "activations", times(passes.sums, stream.scatter), 0);
    add("all_gather", "activations", times(passes.gathers, stream.gather), softmaxes);
    add("all_reduce", "activations", (2 * m.layers + 1) * (norm.scatter + norm.gather), 0);
  } else {
    add("all_reduce", "activations", times(passes.sums, stream.scatter + stream.gather), 0);
    add("all_gather", "activations", 0, softmaxes);
  }
  if (config.recompute.partition)
    add("all_gather", "checkpointed_activations", times(m.layers, stream.gather), 0);
}

}  // namespace

Rows expected_traffic(const deck::Config& config, const Blueprint& blueprint) {
  Rows rows;
  add_data_group(config, blueprint, rows);
  add_tensor_group(config, blueprint, rows);
  return rows;
}

Rows counted(const comm::Traffic& traffic, Rows rows) {
  for (const auto& [channel, volume] : traffic.in_steps()) {
    const auto same = [&, &at = channel](const metrics::TrafficRow& row) {
      return row.group == at.group && row.operation == name_of(at.operation) &&
             row.purpose == name_of(at.purpose);
    };
    auto row = std::find_if(rows.begin(), rows.end(), same);
    if (row == rows.end()) {
      row = rows.insert(rows.end(), {channel.group, std::string(name_of(channel.operation)),
                                     std::string(name_of(channel.purpose)), 0, 0, 0, 0});
    }
    row->elements_per_step = volume.elements / volume.steps;
    row->bytes_per_step = volume.bytes / volume.steps;
  }
  return rows;
}

}  // namespace kzero::train
