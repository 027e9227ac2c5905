#include "convert/weight_files.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/model_file.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;

constexpr Index max_index_bytes = Index{16} << 20;
constexpr std::size_t max_shown = 80;  // characters of a value

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// Returns whether `name` is the name of a file in the index's own folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && fs::path(name).filename() == name &&
         name.find('\0') == std::string::npos;
}

void add_files_of_index(const fs::path& index, WeightFiles& weights) {
  const std::string shown = printable(index.string());
  const auto json = read_json_object(index, max_index_bytes);
  const auto map = json.find("weight_map");
  KZERO_REQUIRE(map != json.end() && map->is_object() && !map->empty(), ExitCode::files,
                "{}: has no \"weight_map\" from tensors to files", shown);
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    KZERO_REQUIRE(file.is_string() && is_plain_name(file.get<std::string>()), ExitCode::files,
                  "{}: tensor {} is placed in {}, which is not the name of a file in its folder",
                  shown, printable(tensor), file.dump(-1, ' ', true).substr(0, max_shown));
    const auto name = file.get<std::string>();
    names.insert(name);
    weights.placed[tensor] = index.parent_path() / name;
  }
  for (const std::string& name : names)
    weights.files.push_back(model_file(index.parent_path(), name));
}

/// The file in a folder that leads to all weights: the only file, or the index of several.
fs::path entry_of(const fs::path& folder) {
  const std::string shown = printable(folder.string());
  const bool single = is_there(folder / weights_name);
  const bool sharded = is_there(folder / index_name);
  KZERO_REQUIRE(!single || !sharded, ExitCode::files,
                "{}: holds both {} and {}; name the one to read", shown, weights_name, index_name);
  KZERO_REQUIRE(single || sharded, ExitCode::files, "{}: holds neither {} nor {}{}", shown,
                weights_name, index_name,
                is_there(folder / "pytorch_model.bin")
                    ? "; pytorch_model.bin has to be saved as safetensors first"
                    : "");
  return model_file(folder, single ? weights_name : index_name);
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

WeightFiles find_weight_files(const fs::path& path) {
  const fs::path entry = is_folder(path) ? entry_of(path) : path;
  WeightFiles weights;
  if (entry.extension() == ".json") {
    add_files_of_index(entry, weights);
  } else {
    weights.files.push_back(entry);
  }
  const fs::path config = entry.parent_path() / config_name;
  if (is_there(config)) weights.config = model_file(entry.parent_path(), config_name);
  return weights;
}

}  // namespace kzero::convert
