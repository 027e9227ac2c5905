// kzero generate: continues prompts with a trained model.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/prompt_input.hpp"
#include "base/error.hpp"
#include "infer/sampler.hpp"
#include "infer/token_text.hpp"
#include "runtime/session.hpp"

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

/// Adds the options that end a continuation, and those that say how a model reads and computes.
void add_length(CLI::App& command, GenerateArguments& arguments);
void add_model_options(CLI::App& command, GenerateArguments& arguments);

/// Receives text on rank 0: that of a single prompt as it is made, otherwise what a prompt prints,
/// prompt after prompt.
using GeneratedText = std::function<void(std::string_view)>;

/// Continues the prompts within a launch; notes go to standard error. May be called again with the
/// same input. Collective over the launch.
void generate_with(const GenerateArguments& arguments, PromptInput& input,
                   const runtime::Session& session, const GeneratedText& print);

/// Initializes MPI and Kokkos and generates: text on standard output, notes on standard error.
/// Collective over the launch.
ExitCode generate(const GenerateArguments& arguments);

}  // namespace kzero::app
