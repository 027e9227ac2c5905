// Where a model comes from that is only run forward: a checkpoint of kzero, or a folder of Hugging
// Face's.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/state_shard.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"
#include "param/spec.hpp"

namespace kzero::infer {

/// Fills `values` with the elements of a parameter that lie in `ranges`, one range's after
/// another's, in fp32. Throws Error(files) for what is missing or not finite. Not collective.
using Values =
    std::function<void(const param::ParamSpec& parameter,
                       const std::vector<checkpoint::Range>& ranges, std::span<float> values)>;

struct SourceOptions {
  Index tensor = 1;                  // grid.tensor
  std::optional<Dtype> precision{};  // none: the checkpoint's; fp32 for weights of Hugging Face
  bool is_partitioned = false;       // a data rank keeps its shard of the parameters alone
};

struct Source {
  std::string path;  // of the checkpoint's or Hugging Face's folder
  bool is_checkpoint = false;
  /// The model, and of a checkpoint the deck that it was trained with, resolved for this launch.
  /// model.sequence is the length that it was trained for; gradients, checkpoints and offload are
  /// off.
  deck::Config config;
  Values values;
  std::vector<std::string> notes{};  // for people: what was passed over, what was not compared
};

/// Opens the newest complete checkpoint at or in `path`, passing over damaged ones as a restart
/// does, or else the folder of config.json and safetensors there. Throws Error(files) if it is
/// neither, and Error(usage) if the model cannot be divided among the ranks. Collective over
/// `world`.
Source open(const grid::Group& world, const std::string& path, const SourceOptions& options);

}  // namespace kzero::infer
