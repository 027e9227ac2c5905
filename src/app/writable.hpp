// Whether the program will be able to write, found out by writing: permissions, quotas, read-only
// and full disks all answer alike. Nothing is left behind.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/types.hpp"

namespace kzero::app {

/// Throws Error(files) unless a file can be written in the folder. One that does not exist yet is
/// not made: its nearest existing parent is tried. Messages begin with `key`.
void require_writable_folder(const std::string& key, const std::filesystem::path& folder);

/// The same of a file that will be appended to; tries its folder if there is no such file yet.
void require_writable_file(const std::string& key, const std::filesystem::path& file);

/// Bytes that this user may still write where the path is or would be made; none where the file
/// system does not say.
std::optional<Index> free_bytes(const std::filesystem::path& path);

}  // namespace kzero::app
