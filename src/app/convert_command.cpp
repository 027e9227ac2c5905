#include "app/convert_command.hpp"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "app/command_table.hpp"
#include "app/commands.hpp"
#include "app/launch.hpp"
#include "base/printable.hpp"
#include "checkpoint/reader.hpp"
#include "convert/adapter_export.hpp"
#include "convert/architecture.hpp"
#include "convert/average.hpp"
#include "convert/config_export.hpp"
#include "convert/export.hpp"
#include "convert/import.hpp"
#include "convert/weight_files.hpp"
#include "deck/architecture.hpp"
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

constexpr int max_paths = 10'000;

void print_written(const std::vector<std::string>& files, const std::string& folder) {
  std::cout << printable(fmt::format("wrote {} to {}", fmt::join(files, ", "), folder)) << '\n';
}

/// The deck with which a checkpoint was trained.
deck::Config deck_of(const checkpoint::Found& found) {
  return deck::read({"the checkpoint's deck", found.manifest.deck}, {});
}

/// What is converted: the weights of one checkpoint, or an average of several.
struct Converted {
  std::vector<checkpoint::Found> parts;
  convert::ExportSource weights;

  const checkpoint::Found& last() const { return parts.back(); }  // describes the result
};

checkpoint::Found open_checkpoint(const grid::Group& world, const std::string& path) {
  KZERO_REQUIRE(!path.ends_with(".safetensors"), ExitCode::usage,
                "{}: a safetensors file becomes a checkpoint with --deck DECK", path);
  std::vector<std::string> problems;
  checkpoint::Found found = checkpoint::open(world, path, engine::saved_parameters, problems);
  for (const std::string& problem : problems)
    std::cerr << "kzero: passed over: " << printable_lines(problem) << '\n';
  return found;
}

convert::ExportSource average_of(const std::vector<checkpoint::Found>& parts,
                                 const std::string& rule, const std::string& array) {
  std::vector<Index> steps;
  steps.reserve(parts.size());
  for (const checkpoint::Found& part : parts) steps.push_back(part.manifest.step);
  const std::vector<double> weights = convert::average_weights(rule, steps);
  convert::require_alike(parts);
  for (std::size_t i = 0; i < parts.size(); ++i)
    std::cout << fmt::format("average     {} of {}\n", weights[i],
                             printable(parts[i].path.string()));
  return convert::averaged_weights(parts, weights, array);
}

/// Opens the checkpoints and reads no weights. The result refers to its own parts.
void open_converted(const grid::Group& world, const ConvertArguments& arguments,
                    Converted& converted) {
  std::string array;
  for (std::size_t i = 0; i + 1 < arguments.paths.size(); ++i) {
    converted.parts.push_back(open_checkpoint(world, arguments.paths[i]));
    array = checkpoint::weights_in(converted.last(), arguments.is_average);
  }
  converted.weights = arguments.average.empty()
                          ? convert::checkpoint_weights(converted.last(), array)
                          : average_of(converted.parts, arguments.average, array);
}

void export_adapter(const Converted& converted, const ConvertArguments& arguments,
                    const convert::ExportOptions& options) {
  const checkpoint::Found& found = converted.last();
  KZERO_REQUIRE(!arguments.shard_bytes && arguments.tokenizer.empty(), ExitCode::usage,
                "{}: holds adapters alone, which become one file without a tokenizer; --shard-size "
                "and --tokenizer need --merge",
                found.path.string());
  KZERO_REQUIRE(arguments.upcycling.experts == 0, ExitCode::usage,
                "{}: holds adapters alone; run `kzero convert --merge {} FOLDER`, and then with "
                "--experts on FOLDER",
                found.path.string(), found.path.string());
  KZERO_REQUIRE(!arguments.to().ends_with(".safetensors"), ExitCode::usage,
                "{}: adapters become a folder with two files; name a folder", arguments.to());
  // The deck's model.initial is the path of the weights on which the adapters were trained.
  print_written(convert::export_adapter(found, converted.weights, arguments.to(),
                                        deck_of(found).model.initial, options),
                arguments.to());
}

/// The parameters of the model itself, without adapters.
param::Table table_of(const deck::Config& config) {
  return param::base_of(model::define(config)->table({}));
}

/// The weights of the mixture of experts that a dense model becomes.
convert::ExportSource with_experts(const convert::ExportSource& dense,
                                   const convert::Upcycling& how, const deck::Config& sparse) {
  return convert::upcycled_weights(dense, sparse.model, checkpoint::parameters_of(table_of(sparse)),
                                   how);
}

convert::ExportTarget target_of(const ConvertArguments& arguments) {
  convert::ExportTarget target = convert::export_target(arguments.to());
  KZERO_REQUIRE(target.is_folder || !arguments.shard_bytes, ExitCode::usage,
                "--shard-size divides weights in a folder; {} is one file", arguments.to());
  KZERO_REQUIRE(target.is_folder || arguments.tokenizer.empty(), ExitCode::usage,
                "--tokenizer is copied into a folder; {} is one file", arguments.to());
  return target;
}

/// Exports all weights of a model.
void export_model(convert::ExportSource source, const ConvertArguments& arguments,
                  convert::ExportOptions options) {
  if (!arguments.tokenizer.empty())
    convert::set_tokenizer(options.origin, arguments.tokenizer, source.model.vocab);
  if (arguments.upcycling.experts > 0) {
    deck::Config dense;
    dense.model = source.model;
    dense.model.sequence = convert::context_of(options.origin, source.model);
    dense.data.format = deck::DataFormat::llmc;  // has no requirement on the vocabulary
    source = with_experts(source, arguments.upcycling,
                          convert::upcycled(dense, arguments.upcycling, source.from));
  }
  const convert::ExportTarget target = target_of(arguments);
  const auto files = convert::export_weights(source, target, options);
  print_note(options.origin.note);
  const auto folder = target.weights.parent_path();
  print_written(files, folder.empty() ? "." : folder.string());
}

void export_merged(const Converted& converted, const ConvertArguments& arguments,
                   const convert::ExportOptions& options) {
  const checkpoint::Found& found = converted.last();
  deck::Config config;
  config.model = found.manifest.model;
  const param::Table table = table_of(config);
  const std::string path = deck_of(found).model.initial;
  const convert::Weights base(path, config.model, table);
  print_note(base.note());
  export_model(convert::merged_weights(found, converted.weights, base, path, table), arguments,
               options);
}

convert::ExportOptions options_of(const ConvertArguments& arguments) {
  return {.dtype = arguments.dtype,
          .shard_bytes = arguments.shard_bytes.value_or(convert::default_shard_bytes)};
}

void export_checkpoint(const grid::Group& world, const ConvertArguments& arguments) {
  target_of(arguments);
  Converted converted;
  open_converted(world, arguments, converted);
  const checkpoint::Found& found = converted.last();
  KZERO_REQUIRE(found.manifest.adapters || !arguments.merge, ExitCode::usage,
                "--merge is for checkpoints of adapters; {} holds all weights",
                found.path.string());
  convert::ExportOptions options = options_of(arguments);
  options.origin = convert::origin_of(found);
  if (found.manifest.adapters && !arguments.merge)
    return export_adapter(converted, arguments, options);
  if (arguments.merge) return export_merged(converted, arguments, options);
  convert::ExportSource source = converted.weights;
  if (arguments.upcycling.experts > 0) source.model.init_std = deck_of(found).model.init_std;
  export_model(std::move(source), arguments, options);
}

/// Whether Hugging Face's weights are there, rather than a checkpoint.
bool is_hugging_face(const std::string& from) {
  const std::filesystem::path folder = from;
  return from.ends_with(".safetensors") || from.ends_with(".json") ||
         convert::is_there(folder / convert::weights_name) ||
         convert::is_there(folder / convert::index_name);
}

/// Exports Hugging Face's weights as a mixture of experts.
void export_upcycled(const ConvertArguments& arguments) {
  const std::string& from = arguments.from();
  KZERO_REQUIRE(!arguments.is_average, ExitCode::usage,
                "--ema is for checkpoints; {} is a Hugging Face model", from);
  target_of(arguments);
  const auto config_file = convert::find_weight_files(from).config;
  KZERO_REQUIRE(config_file, ExitCode::files,
                "{}: there is no {}, which --experts needs without --deck", printable(from),
                convert::config_name);
  const deck::Config config = deck::read(
      {from, "[model]\nconfig = \"config.json\"\n[data]\nformat = \"llmc\"\n"}, {}, {},
      [&](const std::string&) { return convert::read_architecture(config_file->string()); });
  const param::Table table = table_of(config);
  const convert::Weights weights(from, config.model, table);
  print_note(weights.note());
  convert::ExportOptions options = options_of(arguments);
  options.origin = convert::gather_origin(config, from);
  export_model(convert::file_weights(weights, from, config.model, table), arguments, options);
}

/// What a checkpoint for the deck's training records.
checkpoint::Manifest manifest_of(const deck::Config& config) {
  const auto optimizer = optim::make_optimizer(config);
  checkpoint::Manifest manifest;
  manifest.deck = deck::resolved(config);
  manifest.model = config.model;
  manifest.precision = name_of(config.train.precision);
  manifest.optimizer = std::string(optimizer->kind());
  manifest.state_arrays = optimizer->state();
  return manifest;
}

void import_weights(const grid::Group& world, const ConvertArguments& arguments) {
  const deck::Config config = read_deck(world, arguments.deck, deck::Purpose::plan);
  const convert::Upcycling& how = arguments.upcycling;
  const deck::Config sparse =
      how.experts > 0 ? convert::upcycled(config, how, arguments.deck.file) : config;
  const convert::Origin origin = convert::gather_origin(config, arguments.from());
  const param::Table table = table_of(config);
  const convert::Weights weights(arguments.from(), config.model, table);
  convert::ExportSource source =
      convert::file_weights(weights, arguments.from(), config.model, table);
  if (how.experts > 0) source = with_experts(source, how, sparse);
  convert::import_weights(world, source, table_of(sparse), arguments.to(), manifest_of(sparse),
                          origin);
  print_note(weights.note());
  print_note(origin.note);
  std::cout << "wrote " << printable(arguments.to()) << '\n';
}

/// Throws Error(usage) unless the deck describes what the checkpoint holds.
void require_deck_of(const checkpoint::Found& found, const deck::Config& config) {
  const std::string path = found.path.string();
  const auto changes = deck::architecture_changes(found.manifest.model, config.model);
  KZERO_REQUIRE(changes.empty(), ExitCode::usage,
                "{}: is of another model than the deck ({}); set [model] as it was saved", path,
                fmt::join(changes, "; "));
  const std::optional<checkpoint::AdapterRecord>& saved = found.manifest.adapters;
  const bool trains_adapters = deck::trains_adapters(config.lora);
  KZERO_REQUIRE(trains_adapters == saved.has_value(), ExitCode::usage,
                "{}: holds {}, but the deck trains {}; set [lora] as it was saved", path,
                saved ? "adapters alone" : "all weights",
                trains_adapters ? "adapters" : "all weights");
  KZERO_REQUIRE(!saved || convert::is_same_lora(saved->lora, config.lora), ExitCode::usage,
                "{}: its adapters have another rank, alpha or targets than the deck's; set [lora] "
                "as it was saved",
                path);
}

void write_average(const grid::Group& world, const ConvertArguments& arguments) {
  const std::string& to = arguments.paths.back();
  const deck::Config config = read_deck(world, arguments.deck, deck::Purpose::plan);
  Converted converted;
  open_converted(world, arguments, converted);
  require_deck_of(converted.last(), config);
  checkpoint::Manifest manifest = manifest_of(config);
  manifest.adapters = converted.last().manifest.adapters;
  const convert::Origin origin = convert::origin_of(converted.last());
  convert::write_weights(world, converted.weights, to, manifest, origin);
  print_note(origin.note);
  std::cout << "wrote " << printable(to) << ": weights alone, without the optimizer's state\n";
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

void add_upcycling_options(CLI::App& command, convert::Upcycling& upcycling) {
  CLI::Option* experts =
      command
          .add_option("--experts", upcycling.experts,
                      "make a mixture of this many experts of a dense model: each is a copy of its "
                      "feed-forward part; without --deck the weights may be of either form")
          ->check(CLI::Range(Index{1}, Index{1024}))
          ->excludes(command.get_option("--average"))
          ->excludes(command.get_option("--merge"));  // whose check reads each weight once
  command
      .add_option("--top-k", upcycling.experts_per_token,
                  "experts that compute a token; default: 2")
      ->needs(experts);
  command
      .add_option("--drop", upcycling.drop,
                  "share of each expert's channels that are drawn anew, 0 to 1; default: 0")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(experts);
  command.add_option("--seed", upcycling.seed, "of the routers and of --drop; default: 1")
      ->check(CLI::NonNegativeNumber)
      ->needs(experts);
}

/// Other commands take them without --set.
void require_no_overrides(const std::vector<std::string>& paths) {
  std::error_code ignored;
  for (const std::string& path : paths) {
    const bool is_override = deck::find_key(path.substr(0, path.find('='))) != nullptr;
    KZERO_REQUIRE(!is_override || std::filesystem::exists(path, ignored), ExitCode::usage,
                  "{0}: is no path but an override of --deck; write --set {0}", path);
  }
}

}  // namespace

CLI::App* add_convert(CLI::App& cli, ConvertArguments& arguments) {
  CLI::App* command =
      cli.add_subcommand("convert", "turn a checkpoint into a Hugging Face model, or back");
  command
      ->add_option(
          "paths", arguments.paths,
          "what to convert, and last where to: a checkpoint, or several with --average, to "
          "a folder, made if missing, or a .safetensors file; with --deck weights (a "
          "folder, a safetensors file, or the index of a set of them), or checkpoints with "
          "--average, to a folder of checkpoints")
      ->required()
      ->expected(2, max_paths);
  command->add_option(
      "--average", arguments.average,
      "weights with which checkpoints are averaged: mean, numbers such as 0.5,0.3,0.2, or those "
      "that emulate a decay of the learning rate: linear, cosine or 1-sqrt");
  CLI::Option* deck = command->add_option("--deck", arguments.deck.file,
                                          "the deck that describes the weights' model");
  deck->type_name(deck_value);
  command->add_option("--set", arguments.deck.overrides, "key=value: replaces a key of the deck")
      ->type_name(setting_value)
      ->needs(deck);
  add_export_options(*command, arguments, deck);
  add_upcycling_options(*command, arguments.upcycling);
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
  require_no_overrides(arguments.paths);
  KZERO_REQUIRE(arguments.paths.size() == 2 || !arguments.average.empty(), ExitCode::usage,
                "there are {} things to convert to {}; --average makes one of several checkpoints",
                arguments.paths.size() - 1, arguments.to());
  if (!arguments.deck.file.empty() && !arguments.average.empty()) {
    write_average(world, arguments);
  } else if (!arguments.deck.file.empty()) {
    import_weights(world, arguments);
  } else if (arguments.upcycling.experts > 0 && is_hugging_face(arguments.from())) {
    export_upcycled(arguments);
  } else {
    export_checkpoint(world, arguments);
  }
  return ExitCode::done;
}

}  // namespace kzero::app
