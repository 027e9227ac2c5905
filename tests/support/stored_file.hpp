// Writes files for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace kzero::tests {

/// Writes exactly these bytes and replaces an existing file.
inline void store(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace kzero::tests
