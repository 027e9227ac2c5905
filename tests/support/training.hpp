// An engine with all that a run gives it, driven by a test over some of the launch's ranks, and a
// small deck whose sizes divide by nothing.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "deck/rules.hpp"
#include "train/engine.hpp"
#include "train/expected_traffic.hpp"

namespace kzero::tests {

inline std::string reference_file(const std::string& name) {
  return std::string(KZERO_TEST_DATA) + "/reference/" + name;
}

inline int launch_ranks() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

/// Ranks [0, count) of the launch, on those; the other ranks get a group of their own. Collective
/// over all ranks.
inline grid::Group first_ranks(int count) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < count ? 0 : 1, rank, &part);
  return {part, "data"};
}

inline bool is_among_first(int count) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank < count;
}

/// Whether the launch has many ranks on few cores, and so should try less.
inline bool has_few_cores() { return std::getenv("KZERO_FEWER_VARIANTS") != nullptr; }

inline grid::Group copy_of(const grid::Group& group) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(group.handle(), &copy);
  return {copy, "world"};
}

/// Three blocks of odd widths on the tokens of the reference case "odd"; every unit needs padding
/// on 2 ranks and more.
inline deck::Config small_deck(Dtype precision = Dtype::fp32) {
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

inline deck::Config resolved(deck::Config config, Index ranks) {
  const auto violations = deck::apply_rules(config, {ranks, deck::Purpose::train});
  for (const deck::Violation& violation : violations) ADD_FAILURE() << violation.text;
  return config;
}

/// A process grid over a group's ranks and its communicators. Collective over the group.
struct Links {
  Links(const grid::Group& group, comm::Overlap overlap, comm::Traffic& traffic,
        Index tensor_ranks = 1, deck::CommunicatorKind kind = deck::CommunicatorKind::automatic)
      : grid(copy_of(group), 0, tensor_ranks),
        data(comm::make_communicator(kind, overlap, grid.data(), traffic)),
        tensor(comm::make_communicator(
            kind, overlap == comm::Overlap::no ? comm::Overlap::no : comm::Overlap::beside,
            grid.tensor(), traffic)) {}

  train::Peers peers() const { return {*data, *tensor, grid}; }

  const grid::ProcessGrid grid;
  const std::unique_ptr<comm::Communicator> data, tensor;
};

class Training {
 public:
  /// The model stays without values until initialise() or a checkpoint. Collective over `group`.
  Training(const deck::Config& deck, const grid::Group& group,
           deck::GemmBackend backend = deck::GemmBackend::automatic,
           const train::Ingredients& ingredients = {})
      : config(resolved(deck, group.size())),
        given(ingredients),
        links(group, train::overlap_of(config), traffic, config.grid.tensor,
              config.run.communicator),
        grid(links.grid),
        dataset(data::open_dataset(config.data, config.model.sequence, config.model.vocab,
                                   config.train.seed)),
        gemm(tensor::make_gemm(backend)),
        engine(train::make_engine(config, 1, links.peers(), *gemm, ledger, given)) {}

  train::StepResult step(Index step) { return engine->step(step, *dataset.training); }

  std::vector<train::StepResult> run(Index begin, Index end) {
    std::vector<train::StepResult> results;
    for (Index s = begin; s < end; ++s) results.push_back(step(s));
    return results;
  }

  /// The state arrays of all that this rank needs, one behind the other.
  std::vector<float> state() {
    std::vector<float> values;
    for (const checkpoint::StateShard& shard : engine->local_shards()) {
      for (const auto& [name, part] : shard.arrays)
        values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  const deck::Config config;
  const train::Ingredients given;
  comm::Traffic traffic;
  memory::Ledger ledger;
  const Links links;
  const grid::ProcessGrid& grid;
  data::Dataset dataset;
  std::unique_ptr<tensor::Gemm> gemm;
  std::unique_ptr<train::Engine> engine;
};

/// A run with validation holds what was planned, in every category.
inline void expect_planned_bytes(const Training& training, const std::string& what) {
  const memory::Bytes planned = train::planned_bytes(
      training.config, {training.grid.data().size(), 1, train::tensor_rank(training.grid)},
      training.given);
  EXPECT_EQ(planned, training.engine->planned()) << what;
  EXPECT_EQ(planned, training.ledger.peaks()) << what;
}

/// The bytes of the state arrays that this rank owns, whatever the stage.
inline std::string owned_state(Training& training) {
  std::string bytes;
  for (const checkpoint::StateShard& shard : training.engine->owned_shards()) {
    for (const auto& [name, part] : shard.arrays)
      bytes.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
  }
  return bytes;
}

/// Losses, norms, rates and loss scales as numbers whose bits can be compared.
inline std::vector<double> numbers_of(const std::vector<train::StepResult>& results) {
  std::vector<double> values;
  for (const train::StepResult& r : results) {
    values.insert(values.end(), {r.loss, r.grad_norm, r.lr, r.loss_scale, r.skipped ? 1.0 : 0.0});
  }
  return values;
}

}  // namespace kzero::tests
