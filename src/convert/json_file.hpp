// Reads JSON files from outside with limits on the size of a file and the nesting of values.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace kzero::convert {

/// Parses a file's text as an object. Throws Error(files) if it is anything else.
nlohmann::json json_object(const std::filesystem::path& path, std::string_view text);

/// Reads the object in a file of at most `limit_bytes`. Throws Error(files).
nlohmann::json read_json_object(const std::filesystem::path& path, Index limit_bytes);

}  // namespace kzero::convert
