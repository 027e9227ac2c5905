#include "app/mistakes.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "deck/quantity.hpp"
#include "deck/schema.hpp"

namespace kzero::app {

namespace {

struct Names {
  std::string_view option;
  const char* elsewhere;  // without dashes at the beginning, separated by blanks
};

// A name may mean options of several commands, for example memory.
constexpr Names common_names[] = {
    {"--batch", "batch_size max_batch_size"},
    {"--dtype", "outtype torch_dtype precision"},
    {"--ema", "average"},
    {"--fit", "memory gpu_memory max_memory mem"},
    {"--json", "output_format"},
    {"--max-tokens", "max_new_tokens max_length n_predict num_tokens length n"},
    {"--merge", "merge_and_unload merge_lora"},
    {"--nodes", "nnodes num_nodes N"},
    {"--precision", "dtype torch_dtype"},
    {"--prompts", "file prompt_file input_file"},
    {"--ranks", "np nproc nproc_per_node num_processes world_size gpus num_gpus ntasks n"},
    {"--shard-size", "max_shard_size"},
    {"--stop", "stop_strings stop_sequences reverse_prompt r"},
    {"--temperature", "do_sample greedy t"},
    {"--tensor", "tp tp_size tensor_parallel tensor_parallel_size tensor_model_parallel_size"},
    {"--tensors", "parameters weights"},
    {"--tokenizer", "vocab tokenizer_path tokenizer_name"},
    {"--verbose", "debug log_level"},
    {"--verify", "check checksums"},
};

std::string without_dashes(const std::string& option) {
  std::string plain = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::ranges::replace(plain, '-', '_');
  return plain;
}

/// Returns the option among `known`, each with its dashes, that other programs call `option`;
/// dashes and underscores are alike. Empty if there is none.
std::string option_elsewhere(const std::string& option, const std::vector<std::string>& known) {
  const std::string plain = without_dashes(option);
  for (const Names& names : common_names) {
    if (std::ranges::find(known, names.option) == known.end()) continue;
    std::istringstream words(names.elsewhere);
    for (std::string word; words >> word;) {
      if (word == plain) return std::string(names.option);
    }
  }
  return "";
}

/// Returns the one option among `known` that begins with `option`. Empty if there is none or
/// several.
std::string option_beginning(const std::string& option, const std::vector<std::string>& known) {
  std::string found;
  for (const std::string& name : known) {
    if (!name.starts_with(option)) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

std::vector<std::string> commands_of(const CLI::App& cli) {
  std::vector<std::string> names;
  for (const CLI::App* command : cli.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const std::size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  return deck::nearest(word, known, 1 + (word.size() - dashes) / 3);
}

std::string meant(const std::string& text) {
  return text.empty() ? "" : fmt::format("; did you mean {}?", text);
}

/// The other commands that have the option, as a phrase; empty if there are none.
std::string commands_with(const CLI::App& cli, const std::string& option) {
  std::vector<std::string> names;
  for (const CLI::App* command : cli.get_subcommands([](const CLI::App*) { return true; })) {
    const std::vector<std::string> options = options_of(*command);
    const bool has_it = option != "--help" && std::ranges::find(options, option) != options.end();
    if (has_it) names.push_back("kzero " + command->get_name());
  }
  return names.empty() ? ""
                       : fmt::format("{}, which {} it", deck::alternatives(names),
                                     names.size() == 1 ? "has" : "have");
}

/// Explains an unknown option: a mistyped option, another program's name of an option, a key of the
/// deck written like an option, or an option of another command.
std::string unknown_option(const CLI::App& cli, const CLI::App& command,
                           const std::string& argument) {
  const std::string option = argument.substr(0, argument.find('='));
  const std::vector<std::string> known = options_of(command);
  std::string near = option_beginning(option, known);
  if (near.empty()) near = option_elsewhere(option, known);
  if (near.empty()) near = nearest(option, known);
  if (near.empty() && command.get_option_no_throw("overrides") != nullptr) {
    const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
    const std::string path = deck::nearest_path(name);
    if (!path.empty()) near = fmt::format("the deck's key, {}=VALUE", path);
  }
  if (near.empty()) near = commands_with(cli, option);
  return fmt::format("there is no option {}{}", printable_start(option), meant(near));
}

}  // namespace

std::string explain(const CLI::App& cli, const CLI::ParseError& error) {
  const auto parsed = cli.get_subcommands();
  const CLI::App& command = parsed.empty() ? cli : *parsed.front();
  const std::string name = parsed.empty() ? "kzero" : "kzero " + command.get_name();
  const std::vector<std::string> extras = command.remaining();
  std::string text;
  const auto option =
      std::ranges::find_if(extras, [](const std::string& extra) { return extra.starts_with('-'); });
  if (option != extras.end()) {
    text = unknown_option(cli, command, *option);
  } else if (!extras.empty() && parsed.empty()) {
    text = fmt::format("there is no command {}{}", printable_start(extras.front()),
                       meant(nearest(extras.front(), commands_of(cli))));
  } else if (!extras.empty()) {
    text = fmt::format("{} takes no further argument, found {}", name,
                       printable_start(extras.front()));
  } else if (parsed.empty()) {
    for (const std::string& known : commands_of(cli)) text += (text.empty() ? "" : ", ") + known;
    text = "a command is needed: " + text;
  } else {
    text = error.what();
  }
  return fmt::format("{} ({} --help says more)", text, name);
}

CLI::Validator whole_number() {
  return CLI::Validator(
      [](std::string& text) {
        if (const auto count = deck::parse_count(text)) text = std::to_string(*count);
        return std::string();
      },
      "");
}

CLI::Validator number_in(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool is_number = !text.empty() && end == text.c_str() + text.size();
        if (is_number && value >= low && value <= high) return std::string();
        return fmt::format("must be a number from {} to {}, found {}", low, high,
                           printable_start(text));
      },
      CLI::Range(low, high).get_description());
}

CLI::Validator unsigned_number() {
  return CLI::Validator(
      [](std::string& text) {
        std::uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [rest, problem] = std::from_chars(text.data(), end, value);
        if (problem != std::errc{} || rest != end) {
          const Index count = deck::parse_count(text).value_or(-1);
          if (count < 0)
            return fmt::format("must be a whole number from 0 to {}, found {}",
                               std::numeric_limits<std::uint64_t>::max(),
                               text.empty() ? "an empty text" : printable_start(text));
          value = static_cast<std::uint64_t>(count);
        }
        text = std::to_string(value);
        return std::string();
      },
      "");
}

}  // namespace kzero::app
