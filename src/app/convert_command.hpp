// kzero convert: checkpoints to Hugging Face files and back.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/deck_file.hpp"
#include "base/error.hpp"
#include "base/types.hpp"
#include "convert/upcycling.hpp"

namespace kzero::app {

struct ConvertArguments {
  std::vector<std::string> paths;    // of what is converted, and last where to
  std::string average;               // weights of several checkpoints; empty: one is converted
  DeckArguments deck;                // file empty: the result is an export
  Dtype dtype = Dtype::fp32;         // of exported weights
  std::optional<Index> shard_bytes;  // limit of a file of exported weights; none: the default
  bool merge = false;                // adapters into the weights that they change
  bool is_average = false;           // export the moving average of the weights
  std::string tokenizer;             // to export with them; empty: search for one
  convert::Upcycling upcycling{};    // of a dense model into a mixture of experts

  const std::string& from() const { return paths.front(); }  // the only one without --average
  const std::string& to() const { return paths.back(); }
};

/// Adds the subcommand; parsing fills `arguments`.
CLI::App* add_convert(CLI::App& cli, ConvertArguments& arguments);

/// Converts a checkpoint, or an average of several, to a folder that transformers can open or to a
/// safetensors file. With a deck, converts such weights or such an average to a folder of
/// checkpoints. With --experts, the weights may be of
/// either form without a deck, and become those of a mixture of experts.
ExitCode convert(const ConvertArguments& arguments);

}  // namespace kzero::app
