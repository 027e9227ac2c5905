// Files that must survive a crash: what is written is on the disk before the next step, and names
// change in one step. Also reads files back to compare them with their checksums. Errors are
// Error(files) and name the path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::checkpoint {

/// Waits until the file or folder is on the disk.
void sync_to_disk(const std::filesystem::path& path);

/// Renames within one folder and waits until the folder knows the new name.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Replaces the file in one step: readers see the old bytes or the new ones, never a part.
void write_durably(const std::filesystem::path& path, std::string_view bytes);

/// The whole file.
std::string load_file(const std::filesystem::path& path);

/// A part of a file, in bytes.
struct Region {
  Index offset = 0;
  Index bytes = 0;
};

struct Scan {
  Index bytes = 0;                     // of the file
  std::uint64_t checksum = 0;          // of the file
  std::vector<std::uint64_t> regions;  // of each region; of what there is of it in a file too short
};

/// Checksums of a file and of parts of it in one pass with a small buffer.
Scan scan_file(const std::filesystem::path& path, const std::vector<Region>& regions);

}  // namespace kzero::checkpoint
