#include "convert/export.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "checkpoint/reader.hpp"
#include "convert/config_export.hpp"
#include "convert/export_folder.hpp"
#include "convert/finite.hpp"
#include "convert/names.hpp"
#include "convert/weight_files.hpp"
#include "deck/reader.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;
using checkpoint::Parameter;
using checkpoint::Range;
using checkpoint::StateShard;
using Writers = std::vector<std::unique_ptr<SafetensorsWriter>>;

constexpr Index write_elements = Index{1} << 20;

SafetensorsWriter::Shapes shapes_of(deck::ModelFamily family,
                                    const std::vector<Parameter>& parameters) {
  const TensorNames& names = names_of(family);
  const bool untied =
      std::ranges::find(parameters, head_name, &Parameter::name) != parameters.end();
  SafetensorsWriter::Shapes shapes;
  for (const Parameter& parameter : parameters) {
    const bool is_plain = names.plain(parameter.name) == parameter.name;
    const bool prefixed = untied && is_plain && parameter.name != head_name;
    shapes.emplace_back((prefixed ? std::string(names.prefix) : "") + parameter.name,
                        parameter.shape);
  }
  return shapes;
}

void append_weights(const ExportSource& source, const Parameter& parameter, Dtype dtype,
                    SafetensorsWriter& writer) {
  std::vector<float> chunk;
  for (Index at = 0; at < parameter.elements(); at += write_elements) {
    const Range range{at, std::min(write_elements, parameter.elements() - at)};
    chunk.resize(range.count);
    source.read(parameter, range, chunk);
    require_finite(source.from, parameter, range, chunk);
    require_in_range(source.from, parameter, range, chunk, dtype);
    writer.append(chunk);
  }
}

/// Writes all weights under temporary names.
Writers write_weights(const ExportSource& source, const fs::path& folder,
                      const std::vector<WeightShard>& shards, Dtype dtype) {
  Writers writers;
  auto parameter = source.parameters.begin();
  for (const WeightShard& shard : shards) {
    writers.push_back(
        std::make_unique<SafetensorsWriter>(folder / shard.name, shard.tensors, dtype));
    for (std::size_t i = 0; i < shard.tensors.size(); ++i, ++parameter)
      append_weights(source, *parameter, dtype, *writers.back());
  }
  source.finish();
  return writers;
}

/// The source with the constants that files of the model's class have.
ExportSource with_constants(ExportSource source) {
  std::map<std::string, float> constants;
  for (const auto& [name, value] : stored_constants(source.model)) {
    constants[name] = value;
    source.parameters.push_back({name, {}});
  }
  if (constants.empty()) return source;
  source.read = [read = std::move(source.read), constants](const Parameter& parameter, Range range,
                                                           std::span<float> values) {
    const auto found = constants.find(parameter.name);
    if (found == constants.end()) return read(parameter, range, values);
    std::ranges::fill(values, found->second);
  };
  return source;
}

}  // namespace

ExportTarget export_target(const fs::path& to) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(to, ignored);
  const bool is_file = !is_folder && to.extension() == fs::path(weights_name).extension();
  KZERO_REQUIRE(is_folder || is_file || !is_there(to), ExitCode::usage,
                "{}: is a file; weights go to a folder, or to a file whose name ends in {}",
                printable(to.string()), fs::path(weights_name).extension().string());
  const fs::path weights = is_file ? to : to / weights_name;
  return {weights, weights.parent_path() / config_name, !is_file};
}

deck::Model model_of(const checkpoint::Manifest& manifest) {
  deck::Model model = manifest.model;
  if (model.experts > 0)
    model.router_aux_loss =
        deck::read({"the checkpoint's deck", manifest.deck}, {}).model.router_aux_loss;
  return model;
}

ExportSource checkpoint_weights(const checkpoint::Found& found, const std::string& array) {
  const auto read = [&found, array](const Parameter& parameter, Range range,
                                    std::span<float> values) {
    const StateShard shard{parameter.name, {range}, {{array, values}}};
    checkpoint::read(found, std::span(&shard, 1));
  };
  return {found.path.string(), model_of(found.manifest), found.manifest.parameters, read};
}

ExportSource file_weights(const Weights& weights, const std::string& path, const deck::Model& model,
                          const param::Table& table) {
  const auto read = [&weights](const Parameter& parameter, Range range, std::span<float> values) {
    weights.load_range(parameter.name, range, values);
  };
  return {path, model, checkpoint::parameters_of(table), read};
}

std::vector<std::string> export_weights(const checkpoint::Found& found, const ExportTarget& target,
                                        const ExportOptions& options) {
  return export_weights(checkpoint_weights(found, param::master_weights), target, options);
}

std::vector<std::string> export_weights(const ExportSource& source, const ExportTarget& target,
                                        const ExportOptions& options) {
  const ExportSource all = with_constants(source);
  const deck::Model& model = all.model;
  const Index limit = target.is_folder ? options.shard_bytes : std::numeric_limits<Index>::max();
  ExportFiles files{.shards = divide(shapes_of(model.family, all.parameters), options.dtype, limit,
                                     target.weights.filename().string()),
                    .index = {},
                    .config = config_text(model, options.dtype, options.origin, all.from),
                    .generation = {}};
  if (files.shards.size() > 1) files.index = index_text(files.shards, options.dtype);
  if (target.is_folder) {
    files.generation = generation_text(model, options.origin);
    std::ranges::copy_if(
        options.origin.files, std::back_inserter(files.tokenizer),
        [](const checkpoint::OriginFile& file) { return !checkpoint::is_of_model(file.name); });
  }
  require_free(target, files);
  make_folder(folder_of(target.weights));
  put_in_place(target, files,
               write_weights(all, folder_of(target.weights), files.shards, options.dtype));
  return files.names();
}

}  // namespace kzero::convert
