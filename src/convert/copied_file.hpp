// Copies files unchanged, in small parts.
#pragma once

#include <filesystem>

namespace kzero::convert {

/// Returns whether both are regular files with the same bytes.
bool has_same_bytes(const std::filesystem::path& a, const std::filesystem::path& b);

/// Copies a regular file. The copy gets its name when it is complete. Throws Error(files).
void copy_durably(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace kzero::convert
