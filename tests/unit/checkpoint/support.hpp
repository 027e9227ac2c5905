// A model state whose values follow from their positions, split over any number of ranks as in
// training.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "checkpoint/folder/search.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "grid/group.hpp"
#include "support/error_text.hpp"

namespace kzero::checkpoint {

namespace fs = std::filesystem;
using tests::contains;
using tests::error_of;

inline grid::Group world_group() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  return {copy, "world"};
}

/// Stands for the model's parameters: those of these tests are of no model.
inline std::vector<Parameter> its_own(const Manifest& manifest) { return manifest.parameters; }

/// Each test has its own folder, the same on all ranks, which is removed with the object.
class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : world(world_group()) {
    std::random_device seed;
    const auto name = "kzero_checkpoint_" + std::to_string(seed()) + std::to_string(seed());
    folder = world.broadcast((fs::temp_directory_path() / name).string());
    world.barrier();
  }
  ~CheckpointTest() override {
    world.barrier();
    std::error_code ignored;
    if (world.is_root()) fs::remove_all(folder, ignored);
    world.barrier();
  }

  /// Runs f on the root while the other ranks wait.
  template <class F>
  void on_root(F&& f) const {
    if (world.is_root()) f();
    world.barrier();
  }

  std::optional<Found> search(std::span<const StateShard> wanted = {}) {
    problems.clear();
    return newest(world, folder, its_own, problems, wanted);
  }

  grid::Group world;
  fs::path folder;
  std::vector<std::string> problems;
};

/// Sizes: a scalar, primes, and non-multiples. One tensor is larger than the read window.
inline std::vector<Parameter> small_model() {
  return {{"wte.weight", {101, 48}},
          {"h.0.ln_1.weight", {7}},
          {"h.0.attn.c_attn.weight", {13, 39}},
          {"h.0.attn.c_attn.bias", {1}},
          {"ln_f.bias", {48}}};
}

/// The arrays that the tests save for each parameter: AdamW's.
inline const param::StateArrays& three_arrays() {
  static const param::StateArrays arrays{{"master"}, {"first_moment"}, {"second_moment"}};
  return arrays;
}

/// A shard with these arrays in order. An array without values is not wanted.
inline StateShard shard_of(std::string parameter, std::vector<Range> ranges,
                           const std::vector<std::span<float>>& values,
                           const param::StateArrays& arrays = three_arrays()) {
  StateShard shard{std::move(parameter), std::move(ranges)};
  for (std::size_t a = 0; a < arrays.size(); ++a)
    shard.arrays.push_back({arrays[a].name, values[a]});
  return shard;
}

inline float value_of(std::size_t parameter, std::size_t state, Index element, Index step) {
  return static_cast<float>(element) * 0.25F + static_cast<float>(parameter) * 1e5F +
         static_cast<float>(state) * 1e7F + static_cast<float>(step) / 1024.0F;
}

/// The shards of one rank and their memory.
struct Share {
  std::vector<std::vector<float>> memory;
  std::vector<StateShard> shards;
};

inline void add_shard(Share& share, const Parameter& parameter, std::vector<Range> ranges,
                      const param::StateArrays& arrays = three_arrays()) {
  const auto elements = static_cast<std::size_t>(elements_of(ranges));
  if (elements == 0) return;
  StateShard shard{parameter.name, std::move(ranges)};
  for (const param::StateArray& array : arrays) {
    // The vectors' memory does not move. Two-dimensional tensors represent hidden matrices.
    const bool is_left_out =
        array.extent == param::Extent::all_but_matrices && parameter.shape.size() == 2;
    auto& values = share.memory.emplace_back(is_left_out ? 0 : elements, -1.0F);
    shard.arrays.push_back({array.name, values});
  }
  share.shards.push_back(std::move(shard));
}

/// The model as one flat array in equal parts, as ZeRO assigns them to rank `rank` of `ranks`.
inline Share flat_share(const std::vector<Parameter>& model, Index rank, Index ranks,
                        const param::StateArrays& arrays = three_arrays()) {
  Index total = 0;
  for (const Parameter& p : model) total += p.elements();
  const Index part = ceil_div(total, ranks);
  Share share;
  Index begin = 0;
  for (const Parameter& p : model) {
    const Index low = std::clamp(part * rank - begin, Index{0}, p.elements());
    const Index high = std::clamp(part * (rank + 1) - begin, Index{0}, p.elements());
    add_shard(share, p, {{low, high - low}}, arrays);
    begin += p.elements();
  }
  return share;
}

/// Columns of matrices and parts of vectors: many ranges per shard, as in a tensor-parallel split.
inline Share column_share(const std::vector<Parameter>& model, Index rank, Index ranks,
                          const param::StateArrays& arrays = three_arrays()) {
  Share share;
  for (const Parameter& p : model) {
    const Index width = p.shape.back();
    const Index low = width * rank / ranks;
    const Index high = width * (rank + 1) / ranks;
    std::vector<Range> ranges;
    for (Index row = 0; row < p.elements() / width && low < high; ++row) {
      ranges.push_back({row * width + low, high - low});
    }
    add_shard(share, p, std::move(ranges), arrays);
  }
  return share;
}

/// Calls f(value, expected) for every element of a share.
template <class F>
void for_each_value(Share& share, const std::vector<Parameter>& model, Index step, F&& f) {
  for (const StateShard& shard : share.shards) {
    const auto place = std::ranges::find(model, shard.parameter, &Parameter::name);
    for (std::size_t s = 0; s < shard.arrays.size(); ++s) {
      std::size_t i = 0;
      if (shard.arrays[s].values.empty()) continue;
      for (const Range& range : shard.ranges) {
        for (Index e = range.begin; e < range.begin + range.count; ++e, ++i) {
          f(shard.arrays[s].values[i], value_of(place - model.begin(), s, e, step));
        }
      }
    }
  }
}

inline Share filled(Share share, const std::vector<Parameter>& model, Index step) {
  for_each_value(share, model, step, [](float& value, float expected) { value = expected; });
  return share;
}

inline Index wrong_values(Share& share, const std::vector<Parameter>& model, Index step) {
  Index wrong = 0;
  for_each_value(share, model, step,
                 [&](float value, float expected) { wrong += value == expected ? 0 : 1; });
  return wrong;
}

inline Manifest manifest_at(Index step, std::vector<Parameter> model, Index skipped_in_row = 0) {
  Manifest manifest;
  manifest.deck = "[model]\nlayers = 1  # \xC3\xA9\n";
  manifest.model = {.layers = 1,
                    .hidden = 48,
                    .heads = 3,
                    .sequence = 20,
                    .vocab = 101,
                    .feed_forward = 192,
                    .tied_embeddings = false,
                    .norm_eps = 1e-5};
  manifest.precision = "bf16";
  manifest.step = step;
  manifest.tokens = step * 1000;
  manifest.samples = step * 8;
  manifest.loss_scale = 4096;
  manifest.scale_good_steps = std::min<Index>(17, step - skipped_in_row);
  manifest.skipped_steps = std::min<Index>(2 + skipped_in_row, step);
  manifest.skipped_in_row = skipped_in_row;
  manifest.state_arrays = three_arrays();
  manifest.parameters = std::move(model);
  return manifest;
}

/// Writes the small model at a step, partitioned over the ranks of `group`.
inline Written save(const grid::Group& group, const fs::path& folder, Index step, Keep keep,
                    Index ranks_per_file = 1, Index skipped_in_row = 0) {
  const auto model = small_model();
  const Share share = filled(flat_share(model, group.rank(), group.size()), model, step);
  Manifest manifest = manifest_at(step, model, skipped_in_row);
  manifest.data_ranks = group.size();
  return write(group, folder, manifest, share.shards, keep, ranks_per_file);
}

inline void flip_byte(const fs::path& path, Index position) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(position);
  const char byte = static_cast<char>(file.get());
  file.seekp(position);
  file.put(static_cast<char>(byte ^ 0x10));
}

inline std::string all_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace kzero::checkpoint
