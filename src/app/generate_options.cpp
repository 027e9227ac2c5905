#include <CLI/CLI.hpp>

#include "app/generate_command.hpp"
#include "app/inference_command.hpp"
#include "app/mistakes.hpp"

namespace kzero::app {

namespace {

constexpr Index max_token_count = Index{1} << 30;

void add_prompts(CLI::App& command, GenerateArguments& a) {
  command
      .add_option("source", a.source,
                  "a checkpoint, a folder of checkpoints, or a Hugging Face folder")
      ->required();
  auto* prompt =
      command.add_option("--prompt", a.prompts, "a text to continue; may be given several times")
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      .add_option(
          "--prompts", a.prompt_file,
          "JSON lines {\"prompt\": \"..\", \"max_tokens\": n}; -: standard input, with MPICH's "
          "mpiexec at most 64 KiB. Without --prompt and --prompts, standard input is one prompt")
      ->excludes(prompt);
}

void add_sampling(CLI::App& command, infer::Sampling& s) {
  command
      .add_option("--temperature", s.temperature,
                  "divides the logits; 0: always the most probable token")
      ->check(number_in(0, 1e6))
      ->capture_default_str();
  command.add_option("--top-k", s.top_k, "draw from the k most probable tokens; 0: from all")
      ->check(CLI::Range(Index{0}, max_token_count))
      ->transform(whole_number())
      ->capture_default_str();
  command
      .add_option("--top-p", s.top_p,
                  "then from the fewest most probable tokens with at least this total probability")
      ->check(number_in(0, 1))
      ->capture_default_str();
  command
      .add_option("--min-p", s.min_p,
                  "then from tokens at least this probable, relative to the most probable one")
      ->check(number_in(0, 1))
      ->capture_default_str();
  command
      .add_option("--seed", s.seed,
                  "seed of the draws: the same seed and prompts give the same text")
      ->transform(unsigned_number())
      ->capture_default_str();
}

}  // namespace

void add_length(CLI::App& command, GenerateArguments& a) {
  command
      .add_option("--max-tokens", a.max_tokens,
                  "tokens to generate for a prompt, while the model's sequence has room")
      ->check(CLI::Range(Index{1}, max_token_count))
      ->transform(whole_number())
      ->capture_default_str();
  command
      .add_option("--stop", a.stops,
                  "a text that ends a continuation and is not part of it; may be given several "
                  "times")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check([](const std::string& text) {
        return std::string(text.empty() ? "must not be empty" : "");
      });
}

void add_model_options(CLI::App& command, GenerateArguments& a) {
  command.add_option("--tokenizer", a.tokenizer,
                     "a tokenizer.json or its folder, or bytes; default: the one in the folder "
                     "of the model or its data");
  add_special_tokens(command, a.special);
  command
      .add_option(
          "--tensor", a.tensor,
          "ranks that split the model; the others divide the prompts; default: all ranks of "
          "the launch")
      ->check(CLI::Range(Index{1}, Index{1'000'000}))
      ->transform(whole_number());
  add_precision(command, a.precision);
  command.add_option("--batch", a.batch, "prompts that are continued at once")
      ->check(CLI::Range(Index{1}, Index{65536}))
      ->transform(whole_number())
      ->capture_default_str();
  command.add_flag("--chat", a.is_chat,
                   "a prompt is a message of the user, around which the model's chat template is "
                   "written (chat_parts.json next to the tokenizer)");
}

CLI::App* add_generate(CLI::App& cli, GenerateArguments& a) {
  CLI::App* command = cli.add_subcommand("generate", "continue prompts with a trained model");
  add_prompts(*command, a);
  add_length(*command, a);
  add_sampling(*command, a.sampling);
  add_model_options(*command, a);
  command->add_flag("--json", a.json, "one JSON line a prompt: prompt, text, tokens, reason");
  command->add_flag("--no-cache", a.recompute,
                    "recompute the entire sequence for every token: slow, to check the cache");
  return command;
}

}  // namespace kzero::app
