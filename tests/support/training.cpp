#include "support/training.hpp"

#include <mpi.h>

#include <cstdlib>

#include "comm/communicator.hpp"
#include "comm/placement.hpp"
#include "comm/shared_device.hpp"
#include "deck/rules.hpp"
#include "engine/expected_traffic.hpp"
#include "engine/memory_report.hpp"
#include "optim/optimizer.hpp"
#include "support/host_shards.hpp"
#include "tensor/gemm.hpp"

namespace kzero::tests {

namespace {

int launch_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

grid::Group copy_of(const grid::Group& group) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(group.handle(), &copy);
  return {copy, "world"};
}

deck::Config with_backend(deck::Config config, deck::GemmBackend backend) {
  config.run.gemm = backend;
  return config;
}

}  // namespace

int launch_ranks() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

grid::Group first_ranks(int count) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, is_among_first(count) ? 0 : 1, launch_rank(), &part);
  return {part, "data"};
}

bool is_among_first(int count) { return launch_rank() < count; }

bool has_few_cores() { return std::getenv("KZERO_FEWER_VARIANTS") != nullptr; }

deck::Config small_deck(Dtype precision) {
  deck::Config config;
  deck::Model& model = config.model;
  model.layers = 3, model.hidden = 15, model.heads = 3, model.sequence = 13, model.vocab = 101;
  config.train = {
      .steps = 8, .global_batch = 8, .micro_batch = 1, .precision = precision, .seed = 7};
  config.optimizer = {.lr = 3e-3, .warmup = 2};
  config.zero.stage = 0;
  config.data.files = {reference_file("odd.tokens.bin")};
  config.data.format = deck::DataFormat::llmc;
  return config;
}

deck::Config as_llama(deck::Config config, Index kv_heads) {
  deck::Model& model = config.model;
  model.family = deck::ModelFamily::llama;
  model.kv_heads = kv_heads, model.head_dim = 6;
  model.feed_forward = 37;
  model.qkv_bias = model.qk_norm = true;
  model.rope_scaling = deck::RopeScaling::yarn;
  model.rope_factor = 4, model.rope_original_sequence = 8;
  return config;
}

deck::Config resolved(deck::Config config, Index ranks) {
  const auto violations = deck::apply_rules(config, {ranks, deck::Purpose::train});
  for (const deck::Violation& violation : violations) ADD_FAILURE() << violation.text;
  config.placement = comm::placement_on({}, config, ranks);
  return config;
}

deck::Config resolved(deck::Config config, const grid::Group& group) {
  config = resolved(std::move(config), group.size());
  config.placement.shared_device = comm::shared_device(group);
  return config;
}

void set_offload_if_needed(deck::Config& config) {
  if (!tensor::on_host && optim::make_optimizer(config.optimizer)->runs_on_host_alone())
    config.zero.offload = deck::Offload::host;
}

Ranks::Ranks(const deck::Config& config, const grid::Group& group)
    : grid(copy_of(group), 0, config.grid.tensor, config.placement.node_of_rank,
           config.grid.sequence),
      machinery(config, 1, grid) {}

Training::Training(const deck::Config& deck, const grid::Group& group, deck::GemmBackend backend,
                   const Ingredients& ingredients)
    : config(resolved(with_backend(deck, backend), group)),
      ranks(config, group),
      dataset(data::open_dataset(config.data, config.model.sequence, config.model.vocab,
                                 config.train.seed, config.preference.reference, config.distill)),
      engine(engine::make_engine(
          config,
          engine::Blueprint(config, grid.data().size(), engine::tensor_rank(grid),
                            ingredients.family, ingredients.optimizer),
          ranks.machinery)) {}

Training::~Training() = default;

std::vector<engine::StepResult> Training::run(Index begin, Index end) {
  std::vector<engine::StepResult> results;
  for (Index s = begin; s < end; ++s) results.push_back(step(s));
  return results;
}

std::vector<float> Training::state() {
  std::vector<float> values;
  for (const checkpoint::StateShard& shard : HostShards(engine->local_shards())) {
    for (const auto& [name, part] : shard.arrays)
      values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

void expect_planned_bytes(const Training& training, const std::string& what) {
  const memory::Bytes planned =
      engine::planned_bytes(training.config, training.engine->blueprint(), 1);
  EXPECT_EQ(planned, training.engine->planned()) << what;
  EXPECT_EQ(planned, training.ledger.peaks()) << what;
}

void expect_planned_traffic(const Training& training, const std::string& what) {
  const auto rows = engine::counted(
      training.traffic, engine::expected_traffic(training.config, training.engine->blueprint(),
                                                 training.grid.data().rank()));
  for (const metrics::TrafficRow& row : rows) {
    const std::string name = row.operation + " of " + row.purpose + ", " + what;
    EXPECT_EQ(row.elements_per_step, row.expected_elements_per_step) << name;
    EXPECT_EQ(row.bytes_per_step, row.expected_bytes_per_step) << name;
    EXPECT_EQ(row.bytes_between_nodes_per_step, row.expected_bytes_between_nodes_per_step) << name;
  }
}

std::string owned_state(Training& training) {
  std::string bytes;
  for (const checkpoint::StateShard& shard : HostShards(training.engine->owned_shards())) {
    for (const auto& [name, part] : shard.arrays)
      bytes.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
  }
  return bytes;
}

std::vector<double> numbers_of(const std::vector<engine::StepResult>& results) {
  std::vector<double> values;
  for (const engine::StepResult& r : results) {
    values.insert(values.end(), {r.loss, r.grad_norm, r.lr, r.loss_scale, r.skipped ? 1.0 : 0.0});
    for (const std::uint64_t count : r.expert_choices) values.push_back(static_cast<double>(count));
  }
  return values;
}

}  // namespace kzero::tests
