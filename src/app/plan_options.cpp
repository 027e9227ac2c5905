#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/command_table.hpp"
#include "app/mistakes.hpp"
#include "app/plan_command.hpp"
#include "deck/quantity.hpp"
#include "plan/nominal.hpp"

namespace kzero::app {

namespace {

/// Parses a number at the front of the text and removes it. A fraction and an exponent are allowed.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(rest - text.data());
  return value;
}

/// Parses the bytes of "32GiB", "32GB", "1.5 TB" or "4096".
Index parse_bytes(const std::string& option, std::string_view text) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1},      {"B", 1},        {"kB", 1e3},     {"KB", 1e3},     {"MB", 1e6},    {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  const std::string found(text);
  if (const auto number = take_number(text)) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    for (const auto& [name, factor] : units) {
      const double bytes = std::floor(*number * factor);
      if (text == name && bytes >= 1 && bytes <= 1e18) return static_cast<Index>(bytes);
    }
  }
  throw CLI::ValidationError(option, "must be a size such as 32GiB or 32GB, found " + found);
}

/// Parses the integers of "64,128,400".
std::vector<Index> parse_counts(const std::string& option, const std::string& text) {
  constexpr Index max = 1'000'000;  // as grid.data
  std::vector<Index> counts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    counts.push_back(deck::parse_count(text.substr(begin, end - begin)).value_or(0));
    if (counts.back() < 1 || counts.back() > max)
      throw CLI::ValidationError(option,
                                 "must be numbers from 1 to 1000000 such as 64,128, found " + text);
    begin = end + 1;
  }
  return counts;
}

/// Parses "7.5e9", or "7.5B" as in model names.
Index parse_parameters(const std::string& option, std::string_view text) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1}, {"K", 1e3}, {"k", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}};
  const std::string found(text);
  if (const auto number = take_number(text)) {
    for (const auto& [name, factor] : units) {
      const double count = *number * factor;
      const bool is_count = count >= 1 && count <= static_cast<double>(plan::max_parameters);
      if (text == name && is_count) return std::llround(count);
    }
  }
  throw CLI::ValidationError(
      option, "must be a number from 1 to 1e17 such as 7.5e9 or 7.5B, found " + found);
}

/// Adds an option whose text `parse` turns into the target's value.
template <class Target, class Parse>
CLI::Option* add(CLI::App& command, const std::string& name, Target& target, const Parse& parse,
                 const std::string& text) {
  return command.add_option_function<std::string>(
      name, [&target, parse, name](const std::string& value) { target = parse(name, value); },
      text);
}

/// Adds the options for rates that would otherwise be measured. Returns the option that gives all
/// of them.
CLI::Option* add_rates(CLI::App& command, PlanArguments& a, CLI::Option* deck) {
  auto* tflops = add(
      command, "--tflops", a.rates.operations,
      [](const std::string& option, std::string_view text) {
        const std::string found(text);
        const auto number = take_number(text);
        const double operations = number.value_or(0) * 1e12;
        if (!text.empty() || operations <= 0 || !std::isfinite(operations))
          throw CLI::ValidationError(option, "must be a number above 0, found " + found);
        return operations;
      },
      "1e12 operations a second that a rank reaches; default: measured here");
  tflops->type_name("NUMBER")->needs(deck);
  const auto rate = [](const std::string& option, std::string_view text) {
    return static_cast<double>(parse_bytes(option, text));
  };
  auto* sent = add(command, "--bandwidth", a.rates.sent_bytes, rate,
                   "bytes a second that a rank sends, such as 10GB; default: measured here");
  sent->type_name("SIZE")->needs(deck);
  auto* memory = add(command, "--memory-bandwidth", a.rates.memory_bytes, rate,
                     "bytes a second that a rank reads and writes; default: measured here");
  memory->type_name("SIZE")->needs(deck);
  auto* machine = command.add_option(
      "--rates", a.machine,
      "the file (TOML) of a machine's rates, within and between its nodes; nothing is measured");
  machine->type_name("FILE")->needs(deck)->excludes(tflops)->excludes(sent)->excludes(memory);
  add(command, "--tokens", a.tokens, parse_parameters,
      "also estimate the time, node-hours, energy and failures of training on so many")
      ->type_name("NUMBER")
      ->needs(deck);
  command
      .add_flag("--search", a.search,
                "propose grid, stage, sharding, micro-batch and recomputation for --ranks or "
                "--nodes, in the memory of --fit or of the rates file")
      ->needs(deck)
      ->excludes("--tokens");
  command
      .add_flag("--tensor-overlap", a.tensor_overlap,
                "assume that messages of tensor groups overlap with products, as with Megatron's "
                "--tp-comm-overlap; only in plans: kzero's runs do not overlap them")
      ->needs(deck);
  return machine;
}

}  // namespace

CLI::App* add_plan(CLI::App& cli, PlanArguments& a) {
  CLI::App* command = cli.add_subcommand(
      "plan", "show the memory, traffic and time that a deck needs; needs no launch and no device");
  auto* deck = command->add_option("deck", a.deck.file, "the input deck (TOML)");
  deck->type_name(deck_value);
  command->add_option("overrides", a.deck.overrides, "key=value: replaces a key of the deck")
      ->type_name(setting_value);
  add(*command, "--ranks", a.ranks, parse_counts, "ranks of the launch, or several: 64,128,400")
      ->type_name("RANKS");
  auto* fit = add(*command, "--fit", a.fit, parse_bytes,
                  "find what fits in this memory per rank, such as 32GiB or 32GB");
  fit->type_name("SIZE");
  command->add_option("--threads", a.threads, "threads of a rank; default: as a run would choose")
      ->check(CLI::Range(1, 10000))
      ->transform(whole_number())
      ->needs(deck);
  auto* machine = add_rates(*command, a, deck);
  add(*command, "--nodes", a.nodes, parse_counts,
      "nodes of the launch, which its ranks fill in order; default: one. With --rates in place of "
      "--ranks: full nodes, or several numbers of them: 8,16,32")
      ->type_name("NODES")
      ->needs(deck);
  add(*command, "--parameters", a.parameters, parse_parameters,
      "model states of a model of this size, without a deck")
      ->type_name("NUMBER")
      ->excludes(deck)
      ->excludes(fit);
  add(*command, "--tensor", a.tensor, parse_counts,
      "tensor-parallel ranks, or several: 1,4,16; default: the deck's grid.tensor, without a deck "
      "1")
      ->type_name("RANKS");
  command->add_option("--stage", a.stage, "ZeRO stage, without a deck; default: all")
      ->check(CLI::Range(0, 3))
      ->excludes(deck);
  command
      ->add_option("--time-line", a.time_line,
                   "write the estimated step's time line, in the format of run.profile")
      ->type_name("FILE")
      ->needs(deck)
      ->excludes(fit);
  auto* json = command->add_flag_callback(
      "--json", [&a] { a.output = Output::json; }, "print JSON");
  command
      ->add_flag_callback(
          "--trace", [&a] { a.output = Output::trace; },
          "print the schedule of a micro-batch: gathers, reductions, dependencies")
      ->needs(deck)
      ->excludes(fit)
      ->excludes(machine)
      ->excludes(json);
  return command;
}

}  // namespace kzero::app
