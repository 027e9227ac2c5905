#include "app/convert_command.hpp"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "app/command_table.hpp"
#include "app/commands.hpp"
#include "app/launch.hpp"
#include "base/printable.hpp"
#include "checkpoint/reader.hpp"
#include "convert/adapter_export.hpp"
#include "convert/config_export.hpp"
#include "convert/export.hpp"
#include "convert/import.hpp"
#include "deck/quantity.hpp"
#include "deck/reader.hpp"
#include "deck/writer.hpp"
#include "engine/stored_weights.hpp"
#include "grid/agreement.hpp"
#include "grid/process_grid.hpp"
#include "model/definition.hpp"
#include "optim/optimizer.hpp"
#include "runtime/session.hpp"

namespace kzero::app {

namespace {

void print_written(const std::vector<std::string>& files, const std::string& folder) {
  std::cout << printable(fmt::format("wrote {} to {}", fmt::join(files, ", "), folder)) << '\n';
}

/// The path of the weights on which a checkpoint's adapters were trained.
std::string base_of(const checkpoint::Found& found) {
  return deck::read({"the checkpoint's deck", found.manifest.deck}, {}).model.initial;
}

void export_adapter(const checkpoint::Found& found, const ConvertArguments& arguments,
                    const convert::ExportOptions& options) {
  KZERO_REQUIRE(!arguments.shard_bytes && arguments.tokenizer.empty(), ExitCode::usage,
                "{}: holds adapters alone, which become one file without a tokenizer; --shard-size "
                "and --tokenizer need --merge",
                found.path.string());
  KZERO_REQUIRE(!arguments.to.ends_with(".safetensors"), ExitCode::usage,
                "{}: adapters become a folder with two files; name a folder", arguments.to);
  print_written(convert::export_adapter(found, arguments.to, base_of(found), options),
                arguments.to);
}

std::vector<std::string> export_merged(const checkpoint::Found& found,
                                       const convert::ExportTarget& target,
                                       const convert::ExportOptions& options) {
  deck::Config config;
  config.model = found.manifest.model;
  const param::Table table = model::define(config)->table({});
  const std::string path = base_of(found);
  const convert::Weights base(path, config.model, table);
  print_note(base.note());
  return convert::export_weights(convert::merged_weights(found, base, path, table, options.array),
                                 target, options);
}

void export_checkpoint(const grid::Group& world, const ConvertArguments& arguments) {
  const std::string& from = arguments.from;
  KZERO_REQUIRE(!from.ends_with(".safetensors"), ExitCode::usage,
                "{}: a safetensors file becomes a checkpoint with --deck DECK", from);
  const convert::ExportTarget target = convert::export_target(arguments.to);
  KZERO_REQUIRE(target.is_folder || !arguments.shard_bytes, ExitCode::usage,
                "--shard-size divides weights in a folder; {} is one file", arguments.to);
  KZERO_REQUIRE(target.is_folder || arguments.tokenizer.empty(), ExitCode::usage,
                "--tokenizer is copied into a folder; {} is one file", arguments.to);
  std::vector<std::string> problems;
  const checkpoint::Found found = checkpoint::open(world, from, engine::saved_parameters, problems);
  for (const std::string& problem : problems)
    std::cerr << "kzero: passed over: " << printable_lines(problem) << '\n';
  KZERO_REQUIRE(found.manifest.adapters || !arguments.merge, ExitCode::usage,
                "--merge is for checkpoints of adapters; {} holds all weights",
                found.path.string());
  convert::ExportOptions options{
      .dtype = arguments.dtype,
      .shard_bytes = arguments.shard_bytes.value_or(convert::default_shard_bytes),
      .array = checkpoint::weights_in(found, arguments.is_average),
      .origin = convert::origin_of(found)};
  if (found.manifest.adapters && !arguments.merge) return export_adapter(found, arguments, options);
  if (!arguments.tokenizer.empty())
    convert::set_tokenizer(options.origin, arguments.tokenizer, found.manifest.model.vocab);
  const auto files = arguments.merge ? export_merged(found, target, options)
                                     : convert::export_weights(found, target, options);
  print_note(options.origin.note);
  const auto folder = target.weights.parent_path();
  print_written(files, folder.empty() ? "." : folder.string());
}

void import_weights(const grid::Group& world, const ConvertArguments& arguments) {
  const deck::Config config = read_deck(world, arguments.deck, deck::Purpose::plan);
  checkpoint::Manifest manifest;
  manifest.deck = deck::resolved(config);
  manifest.model = config.model;
  manifest.precision = name_of(config.train.precision);
  manifest.state_arrays = optim::make_optimizer(config.optimizer)->state();
  const convert::Origin origin = convert::gather_origin(config, arguments.from);
  print_note(convert::import_weights(world, arguments.from,
                                     param::base_of(model::define(config)->table({})), arguments.to,
                                     manifest, origin));
  print_note(origin.note);
  std::cout << "wrote " << printable(arguments.to) << '\n';
}

void set_dtype(const std::string& name, Dtype& dtype) {
  for (const Dtype one : {Dtype::fp32, Dtype::bf16, Dtype::fp16})
    if (name == convert::long_name(one)) dtype = one;
}

void add_export_options(CLI::App& command, ConvertArguments& arguments, CLI::Option* deck) {
  command
      .add_option_function<std::string>(
          "--dtype", [&arguments](const std::string& name) { set_dtype(name, arguments.dtype); },
          "type of exported weights: float32 (default), bfloat16 or float16")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->excludes(deck);
  command
      .add_flag("--merge", arguments.merge,
                "add the checkpoint's adapters to the weights that they were trained on, and "
                "export these; default: the adapters alone, as a PEFT folder")
      ->excludes(deck);
  command
      .add_option_function<std::string>(
          "--shard-size",
          [&arguments](const std::string& text) {
            arguments.shard_bytes = deck::parse_size(text);
            if (arguments.shard_bytes.value_or(0) < 1)
              throw CLI::ValidationError("--shard-size",
                                         "must be a size such as 5GB or 4GiB, found " + text);
          },
          "largest size of a file of exported weights in a folder, such as 4GiB; default: 5GB")
      ->type_name("SIZE")
      ->excludes(deck);
  command
      .add_flag(
          "--ema", arguments.is_average,
          "export the moving average of the weights, which optimizer.ema adds to a checkpoint")
      ->excludes(deck);
  command
      .add_option(
          "--tokenizer", arguments.tokenizer,
          "tokenizer.json to copy into the folder; default: the one that the checkpoints keep")
      ->excludes(deck);
}

}  // namespace

CLI::App* add_convert(CLI::App& cli, ConvertArguments& arguments) {
  CLI::App* command =
      cli.add_subcommand("convert", "turn a checkpoint into a Hugging Face model, or back");
  command
      ->add_option("from", arguments.from,
                   "a checkpoint; with --deck weights: a folder, a safetensors file, or the index "
                   "of a set of them")
      ->required();
  command
      ->add_option("to", arguments.to,
                   "a folder, made if missing, or a .safetensors file; with --deck a folder of "
                   "checkpoints")
      ->required();
  CLI::Option* deck = command->add_option("--deck", arguments.deck.file,
                                          "the deck that describes the weights' model");
  deck->type_name(deck_value);
  command->add_option("--set", arguments.deck.overrides, "key=value: replaces a key of the deck")
      ->type_name(setting_value)
      ->needs(deck);
  add_export_options(*command, arguments, deck);
  return command;
}

ExitCode convert(const ConvertArguments& arguments) {
  const auto one_thread = [] {
    check_launch(grid::world_group());
    return Index{1};
  };
  const runtime::Session session({.choose_threads = one_thread});
  const grid::Group world = grid::world_group();
  grid::collectively(world, [&] {
    KZERO_REQUIRE(world.size() == 1, ExitCode::usage, "kzero convert runs on one rank, not on {}",
                  world.size());
  });
  if (arguments.deck.file.empty()) {
    export_checkpoint(world, arguments);
  } else {
    import_weights(world, arguments);
  }
  return ExitCode::done;
}

}  // namespace kzero::app
