// Tests by writing whether the program will be able to write. Permissions, quotas, read-only and
// full disks all fail in the same way. Nothing is left behind.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero::app {

/// Throws Error(files) unless a file can be written in the folder. A missing folder is not created;
/// its nearest existing parent is tried instead. Messages begin with `key`.
void require_writable_folder(const std::string& key, const std::filesystem::path& folder);

/// Checks a file that will be appended to. If it does not exist yet, tries its folder.
void require_writable_file(const std::string& key, const std::filesystem::path& file);

/// Returns the bytes that this user may still write at the path, or where it would be created;
/// empty if the file system does not report them.
std::optional<Index> free_bytes(const std::filesystem::path& path);

}  // namespace kzero::app
