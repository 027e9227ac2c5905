// kzero convert: checkpoints to Hugging Face's files and back.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>

#include "app/deck_file.hpp"
#include "base/error.hpp"
#include "base/types.hpp"

namespace kzero::app {

struct ConvertArguments {
  std::string from, to;
  DeckArguments deck;                // file empty: from a checkpoint
  Dtype dtype = Dtype::fp32;         // of exported weights
  std::optional<Index> shard_bytes;  // of a file of exported weights; none: the usual ones
  std::string tokenizer;             // to export with them; empty: looked for
};

/// Adds the subcommand; parsing fills `arguments`.
CLI::App* add_convert(CLI::App& cli, ConvertArguments& arguments);

/// Converts a checkpoint to a folder that transformers opens or a safetensors file, or with a deck
/// such weights to a folder of checkpoints.
ExitCode convert(const ConvertArguments& arguments);

}  // namespace kzero::app
