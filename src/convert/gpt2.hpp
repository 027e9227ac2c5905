// GPT-2 weights under Hugging Face names, in and out. The names and shapes are those of the
// parameter table (linear weights [in, out]); files may carry them with or without "transformer."
// in front.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "checkpoint/manifest.hpp"
#include "checkpoint/search.hpp"
#include "convert/safetensors.hpp"
#include "grid/group.hpp"
#include "param/spec.hpp"

namespace kzero::convert {

/// The weights of one model in a file, read range by range: each rank takes what it holds.
class Gpt2Weights {
 public:
  /// Throws Error(files) with all missing, unknown, misshaped or non-float tensors at once.
  /// Attention masks, which are not weights, are passed over, and so is an lm_head.weight that only
  /// repeats tied embeddings.
  Gpt2Weights(const std::filesystem::path& path, const param::Table& table);

  /// Elements of a parameter of the table as float32. Not collective.
  void load_range(const std::string& parameter, checkpoint::Range range,
                  std::span<float> values) const;

 private:
  SafetensorsFile file_;
  std::map<std::string, const Tensor*> tensors_;  // by the parameter's name
};

/// Writes the checkpoint's master weights as float32 to `file` and config.json beside it; a few MiB
/// of memory, whatever the model. Names are plain; where the output projection is not tied they
/// start with "transformer.", without which that one tensor would not be understood. Throws
/// Error(files). Not collective.
void export_gpt2(const checkpoint::Found& found, const std::filesystem::path& file);

/// Makes the checkpoint `folder`/step_00000000 from the weights in `file`, moments zero. `manifest`
/// brings deck, model shape and precision. Collective over `group`.
void import_gpt2(const grid::Group& group, const std::filesystem::path& file,
                 const param::Table& table, const std::filesystem::path& folder,
                 checkpoint::Manifest manifest);

}  // namespace kzero::convert
