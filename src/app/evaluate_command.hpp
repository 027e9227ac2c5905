// kzero evaluate: the loss of a model on texts, and its accuracy on choices.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/types.hpp"
#include "infer/token_text.hpp"

namespace kzero::app {

struct EvaluateArguments {
  std::string source;
  std::vector<std::string> files;
  std::string format = "auto";
  Index token_bytes = 0;  // of raw files; 0: the checkpoint's data.token_bytes
  std::string tokenizer;  // empty: search for one
  infer::SpecialTokens special = infer::SpecialTokens::added;
  Index batch = 0;     // 0: the checkpoint's micro-batch, or default_batch
  Index sequence = 0;  // 0: the model's, or the length that choices need
  Index tokens = 0;    // 0: all
  Index tensor = 1;
  Index sequence_ranks = 1;
  Index sequence_chunks = 0;  // 0: the checkpoint's, or sequence_ranks
  std::optional<Dtype> precision{};
  bool is_partitioned = false;
  bool is_average = false;     // of the weights
  bool is_as_trained = false;  // as the run of the checkpoint computed
  bool is_json = false;
  std::string log_probs;  // file to write; empty: none
  Index top = 0;          // tokens of each position to write; 0: none
  std::string out;        // file of these
};

/// Adds the subcommand; parsing fills `arguments`.
CLI::App* add_evaluate(CLI::App& cli, EvaluateArguments& arguments);

/// Scores the files and prints the scores on rank 0. Collective over the launch.
ExitCode evaluate(const EvaluateArguments& arguments);

}  // namespace kzero::app
