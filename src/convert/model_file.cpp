#include "convert/model_file.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;

/// Returns whether a path without links is in a folder, at any depth.
bool is_within(const fs::path& path, const fs::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

/// Returns the folder of blobs if `folder`, a path without links, is in a snapshot of a Hugging
/// Face cache: .../models--NAME/snapshots/COMMIT. Returns an empty path otherwise.
fs::path blobs_of(const fs::path& folder) {
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    const fs::path snapshots = at.parent_path(), repository = snapshots.parent_path();
    if (snapshots.filename() == "snapshots" &&
        repository.filename().string().starts_with("models--"))
      return repository / "blobs";
  }
  return {};
}

}  // namespace

fs::path model_file(const fs::path& folder, const std::string& name) {
  const fs::path file = folder / name;
  std::error_code ignored, error;
  if (!fs::is_symlink(fs::symlink_status(file, ignored))) return file;
  const fs::path target = fs::canonical(file, error);
  if (error) return file;  // it leads nowhere, as whoever opens it will say
  const fs::path own = fs::canonical(folder.empty() ? "." : folder), blobs = blobs_of(own);
  const bool is_own = is_within(target, own) || (!blobs.empty() && target.parent_path() == blobs);
  KZERO_REQUIRE(is_own, ExitCode::files,
                "{}: is a link to {}, which is outside the model's folder; kzero follows links "
                "only within the folder and to the blobs of a Hugging Face cache; put the file "
                "itself there",
                printable(file.string()), printable_start(target.string()));
  return file;
}

}  // namespace kzero::convert
