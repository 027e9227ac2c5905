#include "convert/model_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;

/// Returns whether a path without links is in a folder, at any depth.
bool is_within(const fs::path& path, const fs::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

/// Returns whether a path without links is a blob of a Hugging Face cache: models--NAME/blobs/HASH.
/// Snapshots of the cache link to blobs, and so do folders that older hub programs filled.
bool is_blob(const fs::path& path) {
  const fs::path blobs = path.parent_path();
  return blobs.filename() == "blobs" &&
         blobs.parent_path().filename().string().starts_with("models--");
}

}  // namespace

fs::path model_file(const fs::path& folder, const std::string& name) {
  fs::path file = folder / name;
  std::error_code ignored, error;
  if (!fs::is_symlink(fs::symlink_status(file, ignored))) return file;
  const fs::path target = fs::canonical(file, error);
  if (error) return file;  // it leads nowhere, as whoever opens it will say
  const fs::path own = fs::canonical(folder.empty() ? "." : folder);
  const bool is_own = is_within(target, own) || is_blob(target);
  KZERO_REQUIRE(is_own, ExitCode::files,
                "{}: is a link to {}, which is outside the model's folder; kzero follows links "
                "only within the folder and to the blobs of a Hugging Face cache; put the file "
                "itself there",
                printable(file.string()), printable_start(target.string()));
  return file;
}

nlohmann::json json_object(const std::filesystem::path& path, std::string_view text) {
  nlohmann::json value = parse_json(text);
  KZERO_REQUIRE(value.is_object(), ExitCode::files, "{}: is not a JSON object", path.string());
  return value;
}

nlohmann::json read_json_object(const std::filesystem::path& path, Index limit_bytes) {
  return json_object(path, load_file(path, limit_bytes));
}

}  // namespace kzero::convert
