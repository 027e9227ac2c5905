#include "app/mistakes.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "base/printable.hpp"
#include "deck/quantity.hpp"
#include "deck/schema.hpp"

namespace kzero::app {

namespace {

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

/// Explains an unknown option: a mistyped one, or a key of the deck that is written like an option.
std::string unknown_option(const CLI::App& command, const std::string& argument) {
  const std::string option = argument.substr(0, argument.find('='));
  std::string near = nearest(option, options_of(command));
  if (near.empty() && command.get_option_no_throw("overrides") != nullptr) {
    const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
    const std::string path = deck::nearest_path(name);
    if (!path.empty()) near = fmt::format("the deck's key, {}=VALUE", path);
  }
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
    text = unknown_option(command, *option);
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

}  // namespace kzero::app
