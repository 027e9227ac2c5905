// Files of a model, and JSON files.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace kzero::convert {

/// Returns the path of `name` in a model's folder. All code that looks for a file in such a folder
/// uses this function. Throws Error(files) if the name is a link that leads out of the folder, with
/// one exception: links to files of models--NAME/blobs, as the snapshots of a Hugging Face cache
/// have them. The folder itself may be a link. The file need not exist.
std::filesystem::path model_file(const std::filesystem::path& folder, const std::string& name);

// Reads JSON files from outside with limits on the size of a file and the nesting of values.

/// Parses a file's text as an object. Throws Error(files) if it is anything else.
nlohmann::json json_object(const std::filesystem::path& path, std::string_view text);

/// Reads the object in a file of at most `limit_bytes`. Throws Error(files).
nlohmann::json read_json_object(const std::filesystem::path& path, Index limit_bytes);

}  // namespace kzero::convert
