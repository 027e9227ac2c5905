// The source of a model that is only run forward: a kzero checkpoint, or a Hugging Face folder.
#pragma once

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
  std::optional<Dtype> precision{};  // none: the checkpoint's; fp32 for Hugging Face weights
  bool is_partitioned = false;       // a data rank keeps only its shard of the parameters
  bool is_average = false;           // a checkpoint's moving average of the weights
  Index sequence = 1;                // grid.sequence
  Index chunks = 0;  // train.sequence_chunks; 0: the checkpoint's, but at least `sequence`
};

struct Source {
  std::string path;  // of the checkpoint's or Hugging Face's folder
  bool is_checkpoint = false;
  /// The model and, for a checkpoint, the deck that it was trained with, resolved for this launch.
  /// model.sequence is the length that it was trained for. Gradients, checkpoints and offload are
  /// off. train.micro_batch is 1 if sequences have several chunks.
  deck::Config config;
  Values values;
  std::vector<std::string> notes{};  // for people: what was skipped or not compared
};

/// Opens the newest complete checkpoint at or in `path`, skipping damaged ones as a restart does;
/// otherwise the folder of config.json and safetensors there. Throws Error(files) if it is neither,
/// and Error(usage) if the model cannot be divided among the ranks. Collective over `world`.
Source open(const grid::Group& world, const std::string& path, const SourceOptions& options);

}  // namespace kzero::infer
