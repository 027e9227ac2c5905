// The source of a model that is only run forward: a kzero checkpoint, or a Hugging Face folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/format/state_shard.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"
#include "param/spec.hpp"

namespace kzero::infer {

/// Fills `values` with the elements of a parameter in `ranges`, one range after another, in fp32.
/// Throws Error(files) for values that are missing or not finite. Not collective.
using Values =
    std::function<void(const param::ParamSpec& parameter,
                       const std::vector<checkpoint::Range>& ranges, std::span<float> values)>;

struct SourceOptions {
  Index tensor = 1;                  // grid.tensor
  std::optional<Dtype> precision{};  // none: fp32, or the deck's with is_as_trained
  bool is_partitioned = false;       // a data rank keeps only its shard of the parameters
  bool is_average = false;           // a checkpoint's moving average of the weights
  Index sequence = 1;                // grid.sequence
  Index chunks = 0;                  // train.sequence_chunks; 0: `sequence`
  /// Compute as the run did that wrote the checkpoint: with its precision, micro-batch, sequence,
  /// chunks and tiles. Otherwise a model gives the same numbers in any form.
  bool is_as_trained = false;
};

struct Source {
  std::string path;  // of the checkpoint's or Hugging Face's folder
  bool is_checkpoint = false;
  /// The folder with what the model brought, its tokenizer among it: the Hugging Face folder, or
  /// the origin of the checkpoint. Empty if there is none.
  std::filesystem::path origin{};
  /// The folder of the model that a checkpoint without an origin began from. Often empty.
  std::filesystem::path base{};
  /// The model and, for a checkpoint, the deck that it was trained with, resolved for this launch.
  /// model.sequence is the model's context, or with is_as_trained the run's. Gradients, checkpoints
  /// and offload are off. train.micro_batch is 1 if sequences have several chunks.
  deck::Config config;
  Values values;
  std::vector<std::string> notes{};  // for people: what was skipped or not compared
};

/// Opens the newest complete checkpoint at or in `path`, skipping damaged ones as a restart does;
/// otherwise the folder of config.json and safetensors there. Throws Error(files) if it is neither,
/// and Error(usage) if the model cannot be divided among the ranks. Collective over `world`.
Source open(const grid::Group& world, const std::string& path, const SourceOptions& options);

/// engine::weights_hash of the source's weights. Collective over `world`.
std::uint64_t weights_hash(const grid::Group& world, const Source& source);

}  // namespace kzero::infer
