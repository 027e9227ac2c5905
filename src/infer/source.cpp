#include "infer/source.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "checkpoint/folder/origin.hpp"
#include "checkpoint/folder/retention.hpp"
#include "checkpoint/folder/search.hpp"
#include "checkpoint/reader.hpp"
#include "comm/placement.hpp"
#include "comm/shared_device.hpp"
#include "convert/architecture.hpp"
#include "convert/config_export.hpp"
#include "convert/finite.hpp"
#include "convert/origin.hpp"
#include "convert/weight_files.hpp"
#include "convert/weights.hpp"
#include "deck/reader.hpp"
#include "engine/stored_weights.hpp"
#include "engine/weights_hash.hpp"
#include "grid/agreement.hpp"
#include "model/definition.hpp"

namespace kzero::infer {

namespace {

namespace fs = std::filesystem;

enum class Kind { none, checkpoint, hugging_face };

/// Determined by one rank only; the others may see changes of a file system later.
Kind kind_of(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path / checkpoint::manifest_name, ignored)) return Kind::checkpoint;
  if (fs::is_directory(path, ignored) && !checkpoint::candidates(path).empty())
    return Kind::checkpoint;
  return fs::exists(path / convert::config_name, ignored) ? Kind::hugging_face : Kind::none;
}

Kind agreed_kind(const grid::Group& world, const std::string& path) {
  Kind mine = Kind::none;
  grid::collectively(world, [&] {
    if (!world.is_root()) return;
    mine = kind_of(path);
    std::error_code ignored;
    KZERO_REQUIRE(mine != Kind::none, ExitCode::files, "{}: {}", printable(path),
                  fs::exists(path, ignored)
                      ? "has no checkpoint and no Hugging Face model (config.json)"
                      : "does not exist");
  });
  return static_cast<Kind>(world.max(static_cast<Index>(mine)));
}

std::string option_names(const SourceOptions& options) {
  if (options.sequence == 1 && options.chunks == 0) return "(--tensor sets grid.tensor)";
  return "(--tensor sets grid.tensor, --sequence-ranks sets grid.sequence, --sequence-chunks sets "
         "train.sequence_chunks)";
}

/// Keeps the model and the data and, if asked for, how the training computed. Turns off everything
/// that only training needs, and divides the model among the ranks of this launch.
deck::Config adapted(const deck::Config& from, const SourceOptions& options, Index ranks) {
  deck::Config config;
  config.model = from.model;
  config.model.config.clear();
  config.model.initial.clear();
  config.model.sequence_parallel = false;
  config.grid.tensor = options.tensor;
  config.grid.sequence = options.sequence;
  config.zero.stage = options.is_partitioned ? 3 : 0;
  const deck::Train train = options.is_as_trained ? from.train : deck::Train();
  config.train.precision = options.precision.value_or(train.precision);
  config.train.sequence_chunks =
      options.chunks > 0 ? options.chunks : std::max(train.sequence_chunks, options.sequence);
  // A tensor group divides the rows of a tile. Another one rounds differently anyway.
  config.train.tile_rows = round_up(train.tile_rows, options.tensor);
  config.train.micro_batch = config.train.sequence_chunks > 1 ? 1 : train.micro_batch;
  config.train.global_batch = std::max<Index>(1, config.train.micro_batch) * ranks;
  config.data.format = deck::DataFormat::llmc;  // has no requirement on the vocabulary
  try {
    deck::resolve(config, {ranks, deck::Purpose::plan});
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}\n{}", error.what(), option_names(options)));
  }
  config.data = from.data;
  return config;
}

/// Removes the first `count` values and returns them.
std::span<float> take_front(std::span<float>& values, Index count) {
  const auto front = values.first(static_cast<std::size_t>(count));
  values = values.subspan(front.size());
  return front;
}

/// Checks what the model brought, and returns its context. One rank reads for all.
Index checked_context(const grid::Group& world, const checkpoint::Found& found) {
  Index mine = 0;
  grid::collectively(world, [&] {
    if (!world.is_root()) return;
    mine = convert::context_of(convert::origin_of(found), found.manifest.model);
  });
  return world.max(mine);
}

Source open_checkpoint(const grid::Group& world, const std::string& path,
                       const SourceOptions& options) {
  Source source;
  source.is_checkpoint = true;
  std::vector<std::string> problems;
  const auto found = std::make_shared<const checkpoint::Found>(
      checkpoint::open(world, path, engine::saved_parameters, problems));
  for (const std::string& problem : problems) source.notes.push_back("passed over: " + problem);
  source.path = found->path.string();
  source.origin = checkpoint::origin_folder(found->path);
  const Index context = checked_context(world, *found);
  std::string array;
  grid::collectively(world, [&] {
    const checkpoint::Manifest& manifest = found->manifest;
    KZERO_REQUIRE(!manifest.adapters, ExitCode::usage,
                  "{}: holds adapters alone, without the weights that they change; run `kzero "
                  "convert --merge {} FOLDER` and give FOLDER",
                  source.path, source.path);
    source.config = deck::read({source.path + "'s deck", manifest.deck}, {});
    if (source.origin.empty()) source.base = convert::model_folder(source.config.model);
    source.config.model = manifest.model;
    if (!options.is_as_trained) source.config.model.sequence = context;
    source.config = adapted(source.config, options, world.size());
    array = checkpoint::weights_in(*found, options.is_average);
  });
  source.values = [found, array, precision = source.config.train.precision](
                      const param::ParamSpec& p, const std::vector<checkpoint::Range>& ranges,
                      std::span<float> values) {
    const checkpoint::StateShard shard{p.name, ranges, {{array, values}}};
    checkpoint::read(*found, std::span(&shard, 1));
    const checkpoint::Parameter parameter{p.name, p.shape};
    for (const checkpoint::Range& range : ranges) {
      const auto part = take_front(values, range.count);
      convert::require_finite(found->path.string(), parameter, range, part);
      convert::require_in_range(found->path.string(), parameter, range, part, precision);
    }
  };
  return source;
}

/// The config of a deck that has only model.config. The root reads the file for all ranks.
deck::Config config_of(const grid::Group& world, const fs::path& folder) {
  convert::ConfigText text;
  grid::collectively(world, [&] {
    if (world.is_root()) text = convert::load_config(folder);
  });
  text.file = world.broadcast(text.file.string());
  text.text = world.broadcast(text.text);
  deck::Config config;
  grid::collectively(world, [&] {
    const deck::Source deck{text.file.string(),
                            "[model]\nconfig = \"config.json\"\n[data]\nformat = \"llmc\"\n"};
    config =
        deck::read(deck, {}, {}, [&](const std::string&) { return convert::architecture(text); });
  });
  return config;
}

Source open_hugging_face(const grid::Group& world, const std::string& path,
                         const SourceOptions& options) {
  grid::collectively(world, [&] {
    KZERO_REQUIRE(!options.is_average, ExitCode::usage,
                  "{}: is a Hugging Face folder, which has no moving average of the weights",
                  printable(path));
    KZERO_REQUIRE(!options.is_as_trained, ExitCode::usage,
                  "--as-trained: {} is a Hugging Face folder, which does not know its training",
                  printable(path));
  });
  Source source;
  source.path = path;
  source.origin = path;
  source.config = config_of(world, path);
  std::shared_ptr<const convert::Weights> weights;
  grid::collectively(world, [&] {
    source.config = adapted(source.config, options, world.size());
    weights = std::make_shared<const convert::Weights>(path, source.config.model,
                                                       model::define(source.config)->table({}));
  });
  if (!weights->note().empty()) source.notes.push_back(weights->note());
  source.values = [weights, path, precision = source.config.train.precision](
                      const param::ParamSpec& p, const std::vector<checkpoint::Range>& ranges,
                      std::span<float> values) {
    for (const checkpoint::Range& range : ranges) {
      const auto part = take_front(values, range.count);
      weights->load_range(p.name, range, part);
      convert::require_in_range(path, {p.name, p.shape}, range, part, precision);
    }
  };
  return source;
}

}  // namespace

Source open(const grid::Group& world, const std::string& path, const SourceOptions& options) {
  Source source = agreed_kind(world, path) == Kind::checkpoint
                      ? open_checkpoint(world, path, options)
                      : open_hugging_face(world, path, options);
  source.config.placement.shared_device = comm::shared_device(world);
  const std::string note = comm::communicator_note(source.config);
  if (!note.empty()) source.notes.push_back(note);
  return source;
}

std::uint64_t weights_hash(const grid::Group& world, const Source& source) {
  return engine::weights_hash(
      world, source.config,
      [&](const param::ParamSpec& parameter, const checkpoint::Range& range,
          std::span<float> values) { source.values(parameter, {range}, values); });
}

}  // namespace kzero::infer
