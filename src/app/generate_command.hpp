// kzero generate: continues prompts with a trained model.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "infer/sampler.hpp"
#include "infer/token_text.hpp"

namespace kzero::app {

struct GenerateArguments {
  std::string source;                // a checkpoint, a folder of them, or a Hugging Face folder
  std::vector<std::string> prompts;  // texts
  std::string prompt_file;           // JSON lines; "-": standard input; both empty: its text
  Index max_tokens = 128;
  infer::Sampling sampling;
  std::vector<std::string> stops;
  std::string tokenizer;
  infer::SpecialTokens special = infer::SpecialTokens::added;
  Index tensor = 0;  // 0: all ranks
  std::optional<Dtype> precision;
  Index batch = 8;
  bool json = false, recompute = false;
  bool is_chat = false;  // prompts are messages of the user
};

/// Adds the subcommand; parsing fills `arguments`.
CLI::App* add_generate(CLI::App& cli, GenerateArguments& arguments);

/// Initializes MPI and Kokkos and generates: text on standard output, notes on standard error.
/// Collective over the launch.
ExitCode generate(const GenerateArguments& arguments);

}  // namespace kzero::app
