// Saves and loads checkpoints of test trainings as a run does.
#pragma once

#include <gtest/gtest.h>

#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "deck/writer.hpp"
#include "engine/stored_weights.hpp"
#include "optim/optimizer.hpp"
#include "support/temporary_folder.hpp"
#include "support/training.hpp"

namespace kzero::tests {

/// A folder with the same path on all ranks. The root removes it.
class SharedFolder {
 public:
  explicit SharedFolder(const grid::Group& world) : world_(world) {
    path_ = world.broadcast(own_.path().string());
  }
  ~SharedFolder() { world_.barrier(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  const grid::Group& world_;
  TemporaryFolder own_;
  std::filesystem::path path_;
};

inline checkpoint::Written save(Training& training, const grid::Group& group,
                                const std::filesystem::path& folder, Index steps,
                                const std::vector<checkpoint::StateShard>& shards,
                                const std::optional<checkpoint::LossRecord>& loss = {}) {
  const optim::LossScaler& scaler = training.engine->scaler();
  checkpoint::Manifest m;
  m.deck = deck::resolved(training.config);
  m.model = training.config.model;
  if (trains_adapters(training.config.lora))
    m.adapters = {training.config.lora, training.engine->base_hash()};
  m.data_ranks = training.grid.data().size();
  m.tensor_ranks = training.grid.tensor().size();
  m.stage = training.config.zero.stage;
  m.precision = name_of(training.config.train.precision);
  m.step = steps;
  m.samples = steps * training.config.train.global_batch;
  m.loss_scale = scaler.scale();
  m.scale_good_steps = scaler.good_steps();
  m.skipped_steps = scaler.skipped();
  m.skipped_in_row = scaler.skipped_in_a_row();
  m.loss = loss;
  if (const optim::SpikeRule& rule = training.engine->spike_rule(); rule.is_on())
    m.norms = {rule.norms(), rule.skipped(), scaler.spikes_in_a_row()};
  m.optimizer = training.engine->blueprint().optimizer->kind();
  m.optimizer_start = training.engine->optimizer_start();
  m.state_arrays = training.engine->blueprint().state_arrays();
  m.reduced_arrays = training.engine->blueprint().optimizer->reduced_state();
  m.reduced_state.assign(training.engine->reduced_state().begin(),
                         training.engine->reduced_state().end());
  m.parameters = checkpoint::parameters_of(training.engine->blueprint().trained);
  return checkpoint::write(group, folder, std::move(m), shards, 0);
}

inline checkpoint::Written save(Training& training, const grid::Group& group,
                                const std::filesystem::path& folder, Index steps) {
  return save(training, group, folder, steps, training.engine->owned_shards());
}

inline Index load(Training& training, const grid::Group& group,
                  const std::filesystem::path& folder) {
  std::vector<std::string> problems;
  const checkpoint::Found found =
      checkpoint::open(group, folder, engine::saved_parameters, problems);
  EXPECT_TRUE(problems.empty());
  checkpoint::read(found, training.engine->local_shards());
  training.engine->loaded();
  const checkpoint::Manifest& m = found.manifest;
  training.engine->start_optimizer_at(m.optimizer_start);
  std::ranges::copy(m.reduced_state, training.engine->reduced_state().begin());
  const checkpoint::NormRecord norms = m.norms.value_or(checkpoint::NormRecord());
  training.engine->scaler().restore(m.loss_scale, m.scale_good_steps, m.skipped_steps,
                                    m.skipped_in_row, norms.skipped_in_row);
  training.engine->spike_rule().restore(norms.norms, norms.skipped);
  return m.step;
}

}  // namespace kzero::tests
