// A file that a test makes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace kzero::tests {

/// Writes exactly these bytes, replacing a file that is there.
inline void store(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace kzero::tests
