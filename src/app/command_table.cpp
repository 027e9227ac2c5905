#include "app/command_table.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

namespace kzero::app {

namespace {

/// The first of an option's names, as a user would write it.
std::string name_of(const CLI::Option& option) {
  return option.get_positional() ? option.get_name(true) : option.get_name();
}

std::vector<std::string> names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const CLI::Option* option : options) names.push_back(name_of(*option));
  std::ranges::sort(names);  // the set is ordered by address
  return names;
}

/// Splits "{a,b}" into its words; empty if the text is not such a list.
std::vector<std::string> words_in_braces(const std::string& text) {
  std::vector<std::string> words;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return words;
  for (std::size_t begin = 1; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size() - 1);
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// CLI11 joins the type's name and the conditions of its validators by colons: TEXT:{a,b}.
void read_type(const CLI::Option& option, Argument& argument) {
  const std::string type = option.get_type_name();
  const std::size_t colon = std::min(type.find(':'), type.size());
  const std::string demand = type.substr(std::min(colon + 1, type.size()));
  argument.value = colon > 0 ? type.substr(0, colon) : text_value;
  argument.choices = words_in_braces(demand);
  if (argument.choices.empty()) argument.limits = demand;
}

Argument argument_of(const CLI::Option& option) {
  Argument argument;
  argument.text = option.get_description();
  argument.needs = names_of(option.get_needs());
  argument.excludes = names_of(option.get_excludes());
  argument.fallback = option.get_default_str();
  argument.is_required = option.get_required();
  argument.is_repeated = option.get_expected_max() > 1;
  if (option.get_positional()) {
    argument.names = {name_of(option)};
  } else {
    for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
    for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
  }
  if (option.get_items_expected_max() > 0) read_type(option, argument);
  return argument;
}

Command command_of(const CLI::App& app) {
  Command command;
  command.name = app.get_name();
  command.text = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden, from --help too
    auto& list = option->get_positional() ? command.positionals : command.options;
    list.push_back(argument_of(*option));
  }
  return command;
}

}  // namespace

std::vector<Command> command_table(const CLI::App& cli) {
  std::vector<Command> commands{command_of(cli)};
  for (const CLI::App* command : cli.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) commands.push_back(command_of(*command));
  return commands;
}

}  // namespace kzero::app
