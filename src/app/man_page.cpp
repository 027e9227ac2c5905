#include "app/man_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "base/version.hpp"

namespace kzero::app {

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

const Pairs& variables() {
  static const Pairs list = {
      {"OMP_NUM_THREADS", "Threads per rank, if run.threads is not set."},
      {"KZERO_JOB_END_TIME",
       "The end of the job in seconds since 1970; a run stops run.stop_margin before it. The job "
       "scripts for PBS and Flux set it."},
      {"SLURM_JOB_END_TIME", "The same, by Slurm. The earlier counts."},
      {"SLURM_JOB_ID, SLURM_RESTART_COUNT",
       "The job, and its restart, that uses a folder of checkpoints."},
      {"TERM", "If dumb or not set, the progress line is not redrawn in place."}};
  return list;
}

const Pairs& files() {
  static const Pairs list = {
      {"CHECKPOINTS/step_00001000/",
       "A checkpoint of the folder in checkpoint.folder: manifest.h5 and shard_00000.h5 and on."},
      {"CHECKPOINTS/end.json",
       "How the last run ended, in one line. If it is missing, that run did not end cleanly."},
      {"CHECKPOINTS/lock", "The process that uses the folder."},
      {"METRICS.jsonl", "One JSON object a line, in the file that run.metrics names."},
      {"PREFIX/share/kzero/", "Decks, job scripts, plots and documents."}};
  return list;
}

const Pairs& examples() {
  static const Pairs list = {
      {"mpiexec -n 2 kzero train DECK.toml train.steps=100 zero.stage=3",
       "Trains on two ranks, with two keys of the deck replaced."},
      {"kzero check --files DECK.toml",
       "Reports everything that is wrong with a deck and its data."},
      {"kzero plan DECK.toml --ranks 64 --fit 32GiB",
       "Searches what fits in 32 GiB of each of 64 ranks."},
      {"kzero inspect --verify CHECKPOINTS", "Reads the newest checkpoint and compares checksums."},
      {"kzero convert CHECKPOINTS FOLDER",
       "Writes a folder that Hugging Face's transformers opens."},
      {"kzero compare CHECKPOINTS FOLDER PROMPTS.jsonl",
       "Prints two models' answers to the same prompts side by side."},
      {"source <(kzero completion bash)", "Lets bash complete commands, options and keys."}};
  return list;
}

/// Escapes characters that roff interprets or prints differently: hyphens, quotes and accents that
/// readers copy, and a dot at the beginning of a line.
std::string roff(const std::string& text) {
  static const std::map<char, std::string> escapes = {
      {'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string escaped;
  for (const char c : text) {
    const auto escape = escapes.find(c);
    if (c == '.' && (escaped.empty() || escaped.back() == '\n')) escaped += "\\&";
    escaped += escape == escapes.end() ? std::string(1, c) : escape->second;
  }
  return escaped;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

/// Begins a text with a capital and ends it with a full stop.
std::string sentence(std::string text) {
  if (text.empty()) return text;
  // A text that begins with a word of the deck, as in "key=value: ...", keeps that word.
  if (text.substr(0, text.find(' ')).find('=') == std::string::npos)
    text.front() = static_cast<char>(std::toupper(text.front()));
  return text.back() == '.' ? text : text + ".";
}

std::string item(const std::string& head, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", head, roff(text));
}

std::string value_of(const Argument& argument) {
  if (argument.choices.empty()) return italic(argument.value);
  std::string joined;
  for (const std::string& choice : argument.choices)
    joined += (joined.empty() ? "" : " | ") + bold(choice);
  return joined;
}

/// An argument's heading: "--ranks N, ...", or the name of a positional argument.
std::string head_of(const Argument& argument, bool is_positional) {
  if (is_positional) return italic(argument.names.front());
  std::vector<std::string> heads;
  for (const std::string& name : argument.names) heads.push_back(bold(name));
  const std::string head = fmt::format("{}", fmt::join(heads, ", "));
  return argument.takes_value() ? head + " " + value_of(argument) : head;
}

/// CLI11's "INT in [0 - 3]" and "POSITIVE" in words.
std::string limits_of(const Argument& argument) {
  std::string text = argument.limits;
  if (const std::size_t range = text.find(" in ["); range != std::string::npos) {
    text = "from " + text.substr(range + 5, text.size() - range - 6);
    if (const std::size_t dash = text.find(" - "); dash != std::string::npos)
      text.replace(dash, 3, " to ");
  }
  return text == "POSITIVE" ? "above 0" : text;
}

std::string text_of(const Argument& argument) {
  std::string text = sentence(argument.text);
  if (!argument.limits.empty()) text += fmt::format(" Allowed: {}.", limits_of(argument));
  if (!argument.fallback.empty()) text += fmt::format(" Default: {}.", argument.fallback);
  if (!argument.needs.empty()) text += fmt::format(" Needs {}.", fmt::join(argument.needs, ", "));
  if (!argument.excludes.empty())
    text += fmt::format(" Not with {}.", fmt::join(argument.excludes, ", "));
  return text;
}

std::string usage(const Command& command) {
  std::string text = bold("kzero " + command.name) + " [" + italic("OPTIONS") + "]";
  for (const Argument& argument : command.positionals) {
    const std::string name = italic(argument.names.front()) + (argument.is_repeated ? " ..." : "");
    text += argument.is_required ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string section(const Command& command) {
  std::string text = fmt::format(".SS \"kzero {}\"\n{}\n.PP\n{}\n", roff(command.name),
                                 usage(command), roff(sentence(command.text)));
  for (const Argument& argument : command.positionals)
    text += item(head_of(argument, true), text_of(argument));
  for (const Argument& option : command.options)
    text += item(head_of(option, false), text_of(option));
  return text;
}

std::string items(const Pairs& pairs) {
  std::string text;
  for (const auto& [name, meaning] : pairs) text += item(bold(name), meaning);
  return text;
}

std::string opening(const std::vector<Command>& commands) {
  const Command& program = commands.front();
  std::string text = fmt::format(".TH KZERO 1 \"\" \"kzero {}\" \"User Commands\"\n", version());
  text += ".SH NAME\nkzero \\- train GPT\\-style language models with ZeRO from a batch job\n";
  text += fmt::format(".SH SYNOPSIS\n.nf\n{} {}\n", bold("kzero"),
                      program.options.empty() ? "" : "[" + italic("OPTIONS") + "]");
  for (std::size_t i = 1; i < commands.size(); ++i) text += usage(commands[i]) + "\n";
  text += ".fi\n.SH DESCRIPTION\n" + roff(sentence(program.text)) + "\n.PP\n";
  text += roff(
      "A deck is a TOML file that says what to train and how; key=value on the command line "
      "replaces a key of it. kzero defaults prints every key with its type, unit and range. A "
      "stopped run continues bit for bit with the same command.\n");
  return text;
}

std::string closing() {
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_code_meanings())
    text += item(bold(std::to_string(static_cast<int>(code))), sentence(meaning));
  text += ".SH ENVIRONMENT\n" + items(variables());
  text += ".SH FILES\n" + items(files());
  text += ".SH EXAMPLES\n" + items(examples());
  text +=
      ".SH SEE ALSO\n" + roff("The documents in PREFIX/share/kzero/docs; mpiexec(1), sbatch(1).");
  return text + "\n.PP\n" +
         roff("Method: arXiv 1910.02054 (ZeRO), arXiv 1909.08053 (Megatron-LM).") + "\n";
}

}  // namespace

std::vector<std::pair<ExitCode, std::string>> exit_code_meanings() {
  return {{ExitCode::done, "done"},
          {ExitCode::other, "any other failure"},
          {ExitCode::usage, "command line or deck"},
          {ExitCode::memory, "does not fit memory"},
          {ExitCode::files,
           "files: missing, damaged, unwritable, in use by another run, of another model"},
          {ExitCode::diverged, "diverged: optimizer.max_skipped steps in a row were skipped"},
          {ExitCode::stopped, "stopped in time, with a checkpoint: run it again"}};
}

std::string man_page(const std::vector<Command>& commands) {
  std::string text = opening(commands) + ".SH OPTIONS\n";
  for (const Argument& option : commands.front().options)
    text += item(head_of(option, false), text_of(option));
  text += ".SH COMMANDS\n";
  for (std::size_t i = 1; i < commands.size(); ++i) text += section(commands[i]);
  return text + closing();
}

void add_man(CLI::App& cli, std::function<ExitCode()>& chosen) {
  cli.add_subcommand("man", "print the manual page: kzero man | man -l -")->callback([&] {
    chosen = [&] {
      std::cout << man_page(command_table(cli));
      return ExitCode::done;
    };
  });
}

}  // namespace kzero::app
