#include "app/defaults_command.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/printable.hpp"
#include "convert/architecture.hpp"
#include "deck/reader.hpp"
#include "deck/writer.hpp"

namespace kzero::app {

namespace {

/// The [model] table that the file implies: every key with its value, followed by the reason.
std::string model_of(const std::string& path) {
  const convert::ConfigText file = convert::load_config(path);
  std::vector<deck::ImpliedValue> implied = convert::architecture(file);
  // Read like a deck, so that rules between the keys are checked too. Tokens do not matter here.
  deck::read({"kzero defaults", ""}, {"model.config=" + path, "data.format=llmc"}, {},
             [&](const std::string&) { return implied; });
  const std::string name = printable(file.file.string());
  std::string text = fmt::format("# The model of {}\n[model]\n", name);
  for (const deck::ImpliedValue& one : implied) {
    const deck::Key& key = *deck::find_key(one.path);
    const std::string line = fmt::format("{} = {}", key.name(), as_toml(key, one.value));
    text += fmt::format("{:<36}  # {}\n", line, one.origin.substr(name.size() + 2));
  }
  return text;
}

}  // namespace

CLI::App* add_defaults(CLI::App& cli, DefaultsArguments& arguments) {
  CLI::App* command = cli.add_subcommand("defaults", "print the annotated default deck");
  auto* reference = command->add_flag("--reference", arguments.reference,
                                      "print the deck reference in Markdown instead");
  command
      ->add_option("--config", arguments.config,
                   "print the [model] table of a Hugging Face config.json, or of its folder")
      ->excludes(reference);
  return command;
}

ExitCode defaults(const DefaultsArguments& arguments) {
  std::cout << (!arguments.config.empty() ? model_of(arguments.config)
                : arguments.reference     ? deck::reference_markdown()
                                          : deck::annotated_defaults());
  return ExitCode::done;
}

}  // namespace kzero::app
