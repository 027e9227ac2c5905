#include "convert/gpt2_export.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "checkpoint/files.hpp"
#include "checkpoint/reader.hpp"
#include "convert/finite.hpp"
#include "convert/gpt2.hpp"
#include "convert/gpt2_config.hpp"
#include "convert/safetensors_writer.hpp"
#include "convert/weight_files.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;
using checkpoint::Parameter;
using checkpoint::Range;
using checkpoint::StateShard;

constexpr Index write_elements = Index{1} << 20;

std::string shown(const fs::path& path) { return printable(path.string()); }

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// Returns whether another file in the folder holds weights, which config.json describes too.
bool has_other_weights(const fs::path& weights) {
  std::error_code error;
  const fs::directory_iterator files(folder_of(weights), error);
  return !error && std::ranges::any_of(files, [&](const fs::directory_entry& entry) {
    return entry.path().extension() == weights.extension() &&
           entry.path().filename() != weights.filename();
  });
}

/// Returns whether config.json has the text already.
bool is_up_to_date(const fs::path& config, const std::string& text) {
  return is_config_of_kzero(config) && checkpoint::load_file(config) == text;
}

/// Throws Error(files) if an export would destroy or contradict the work of others.
void require_free(const ExportTarget& target, const std::string& config) {
  constexpr const char* way_out = "move it away, or choose another folder";
  const fs::path index = folder_of(target.weights) / index_name;
  KZERO_REQUIRE(!is_there(index), ExitCode::files,
                "{}: belongs to other weights in this folder; {}", shown(index), way_out);
  KZERO_REQUIRE(!is_there(target.weights) || is_written_by_kzero(target.weights), ExitCode::files,
                "{}: exists and was not written by kzero convert; {}", shown(target.weights),
                way_out);
  if (!is_there(target.config) || is_up_to_date(target.config, config)) return;
  KZERO_REQUIRE(is_config_of_kzero(target.config), ExitCode::files,
                "{}: exists and was not written by kzero convert; {}", shown(target.config),
                way_out);
  KZERO_REQUIRE(!has_other_weights(target.weights), ExitCode::files,
                "{}: describes another model, whose weights are in this folder too; choose "
                "another folder",
                shown(target.config));
}

/// Creates the folder and its parents, and waits until they are on the disk.
void make_folder(const fs::path& folder) {
  if (fs::is_directory(folder)) return;
  make_folder(folder_of(folder));
  std::error_code error;
  fs::create_directory(folder, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be created ({})", shown(folder),
                error.message());
  checkpoint::sync_to_disk(folder_of(folder));
}

void remove_durably(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be removed ({})", shown(file),
                error.message());
  checkpoint::sync_to_disk(folder_of(file));
}

SafetensorsWriter::Shapes shapes_of(const std::vector<Parameter>& parameters) {
  const bool untied =
      std::ranges::find(parameters, head_name, &Parameter::name) != parameters.end();
  SafetensorsWriter::Shapes shapes;
  for (const Parameter& parameter : parameters) {
    const bool prefixed = untied && parameter.name != head_name;
    shapes.emplace_back((prefixed ? name_prefix : "") + parameter.name, parameter.shape);
  }
  return shapes;
}

void append_weights(const checkpoint::Found& found, SafetensorsWriter& writer) {
  std::vector<float> chunk;
  for (const Parameter& parameter : found.manifest.parameters) {
    for (Index at = 0; at < parameter.elements(); at += write_elements) {
      const Range range{at, std::min(write_elements, parameter.elements() - at)};
      chunk.resize(range.count);
      const StateShard shard{parameter.name, {range}, {{param::master_weights, chunk}}};
      checkpoint::read(found, std::span(&shard, 1));
      require_finite(found.path.string(), parameter, range, chunk);
      writer.append(chunk);
    }
  }
}

}  // namespace

ExportTarget export_target(const fs::path& to) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(to, ignored);
  const bool is_file = !is_folder && to.extension() == fs::path(weights_name).extension();
  KZERO_REQUIRE(is_folder || is_file || !is_there(to), ExitCode::usage,
                "{}: is a file; weights go to a folder, or to a file whose name ends in {}",
                shown(to), fs::path(weights_name).extension().string());
  const fs::path weights = is_file ? to : to / weights_name;
  return {weights, weights.parent_path() / config_name};
}

void export_gpt2(const checkpoint::Found& found, const ExportTarget& target) {
  const std::string config = gpt2_config(found.manifest.model);
  require_free(target, config);
  make_folder(folder_of(target.weights));
  SafetensorsWriter writer(target.weights, shapes_of(found.manifest.parameters));
  append_weights(found, writer);
  const bool up_to_date = is_up_to_date(target.config, config);
  if (!up_to_date && is_there(target.config)) remove_durably(target.config);
  writer.finish();
  if (!up_to_date) checkpoint::write_durably(target.config, config);
}

}  // namespace kzero::convert
