#include "convert/export_folder.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "convert/config_export.hpp"
#include "convert/weight_files.hpp"
#include "storage/files.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;

constexpr const char* way_out = "move it away, or choose another folder";

std::string shown(const fs::path& path) { return printable(path.string()); }

/// The names of weight files that an earlier export to the folder may have left.
std::vector<fs::path> former_weights(const ExportTarget& target) {
  std::vector<fs::path> found;
  if (is_there(target.weights)) found.push_back(target.weights);
  if (!target.is_folder) return found;
  std::error_code error;
  const fs::directory_iterator files(folder_of(target.weights), error);
  if (error) return found;
  for (const fs::directory_entry& entry : files)
    if (is_shard_name(entry.path().filename().string())) found.push_back(entry.path());
  return found;
}

/// Returns whether the folder has another file of weights, which config.json would describe too.
bool has_other_weights(const ExportTarget& target) {
  std::error_code error;
  const fs::directory_iterator files(folder_of(target.weights), error);
  return !error && std::ranges::any_of(files, [&](const fs::directory_entry& entry) {
    const fs::path name = entry.path().filename();
    const bool is_own =
        name == target.weights.filename() || (target.is_folder && is_shard_name(name.string()));
    return name.extension() == target.weights.extension() && !is_own;
  });
}

/// Returns whether config.json already has this text.
bool is_up_to_date(const fs::path& config, const std::string& text) {
  return is_json_of_kzero(config) && load_file(config) == text;
}

/// Returns whether a regular file has these bytes.
bool is_file_of(const fs::path& file, const std::string& bytes) {
  const Loaded loaded = try_load(file, static_cast<Index>(bytes.size()));
  return loaded.state == Loaded::State::good && loaded.bytes == bytes;
}

void require_ours(const fs::path& file, bool is_ours) {
  KZERO_REQUIRE(!is_there(file) || is_ours, ExitCode::files,
                "{}: exists and was not written by kzero convert; {}", shown(file), way_out);
}

void remove_durably(const fs::path& file) {
  if (!is_there(file)) return;
  std::error_code error;
  fs::remove(file, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be removed ({})", shown(file),
                error.message());
  storage::sync_to_disk(folder_of(file));
}

}  // namespace

std::vector<std::string> ExportFiles::names() const {
  std::vector<std::string> all;
  all.push_back(shards.front().name);
  if (shards.size() > 1) all.back() += " to " + shards.back().name;
  if (!index.empty()) all.emplace_back(index_name);
  all.emplace_back(config_name);
  if (!generation.empty()) all.emplace_back(generation_name);
  for (const checkpoint::OriginFile& file : tokenizer) all.push_back(file.name);
  return all;
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

void require_free(const ExportTarget& target, const ExportFiles& files) {
  const fs::path folder = folder_of(target.weights);
  const fs::path index = folder / index_name;
  KZERO_REQUIRE(!is_there(index) || target.is_folder, ExitCode::files,
                "{}: belongs to other weights in this folder; {}", shown(index), way_out);
  require_ours(index, is_index_of_kzero(index));
  for (const fs::path& weights : former_weights(target))
    require_ours(weights, is_written_by_kzero(weights));
  const fs::path generation = folder / generation_name;
  if (!files.generation.empty()) require_ours(generation, is_json_of_kzero(generation));
  for (const checkpoint::OriginFile& file : files.tokenizer) {
    const fs::path to = folder / file.name;
    KZERO_REQUIRE(!is_there(to) || is_file_of(to, file.bytes), ExitCode::files,
                  "{}: exists and is not the {} of the model; {}", shown(to), file.name, way_out);
  }
  if (is_up_to_date(target.config, files.config)) return;
  require_ours(target.config, is_json_of_kzero(target.config));
  KZERO_REQUIRE(!is_there(target.config) || !has_other_weights(target), ExitCode::files,
                "{}: describes another model, whose weights are in this folder too; choose "
                "another folder",
                shown(target.config));
}

void make_folder(const fs::path& folder) {
  if (fs::is_directory(folder)) return;
  make_folder(folder_of(folder));
  std::error_code error;
  fs::create_directory(folder, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be created ({})", shown(folder),
                error.message());
  storage::sync_to_disk(folder_of(folder));
}

void put_in_place(const ExportTarget& target, const ExportFiles& files,
                  const std::vector<std::unique_ptr<SafetensorsWriter>>& writers) {
  const fs::path folder = folder_of(target.weights);
  for (const auto& writer : writers) writer->sync();
  // A single file is replaced atomically. With several files, nothing may lead to a mixture of two
  // models.
  const std::vector<fs::path> former = former_weights(target);
  const bool is_one_file =
      files.index.empty() &&
      std::ranges::all_of(former, [&](const fs::path& file) { return file == target.weights; });
  const bool stays = is_one_file && is_up_to_date(target.config, files.config);
  if (!stays) remove_durably(target.config);
  if (target.is_folder) remove_durably(folder / index_name);
  for (const auto& writer : writers) writer->finish();
  for (const fs::path& file : former) {
    const std::string name = file.filename().string();
    if (std::ranges::find(files.shards, name, &WeightShard::name) == files.shards.end())
      remove_durably(file);
  }
  if (!files.index.empty()) storage::write_durably(folder / index_name, files.index);
  const fs::path generation = folder / generation_name;
  if (!files.generation.empty()) {
    storage::write_durably(generation, files.generation);
  } else if (target.is_folder && is_json_of_kzero(generation)) {
    remove_durably(generation);  // of an earlier export
  }
  for (const checkpoint::OriginFile& file : files.tokenizer) {
    const fs::path to = folder / file.name;
    make_folder(folder_of(to));
    if (!is_there(to)) storage::write_durably(to, file.bytes);
  }
  if (!stays) storage::write_durably(target.config, files.config);
}

}  // namespace kzero::convert
