// Tests by writing whether the program will be able to write: permissions, quotas, read-only and
// full disks all fail alike. Nothing is left behind.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero::app {

/// Throws Error(files) unless a file can be written in the folder. A missing folder is not created:
/// its nearest existing parent is tried. Messages begin with `key`.
void require_writable_folder(const std::string& key, const std::filesystem::path& folder);

/// Checks a file that will be appended to; tries its folder if there is no such file yet.
void require_writable_file(const std::string& key, const std::filesystem::path& file);

/// Returns the bytes that this user may still write at the path, or where it would be created;
/// empty if the file system does not say.
std::optional<Index> free_bytes(const std::filesystem::path& path);

}  // namespace kzero::app
