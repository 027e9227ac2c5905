// Writes safetensors files of float32 as a stream. Knows no model.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "convert/atomic_file.hpp"

namespace kzero::convert {

/// Writes a file of float32 tensors: only what append() is given is in memory. The file gets its
/// name in finish(); without it no trace stays. Its metadata says that kzero wrote it.
class SafetensorsWriter {
 public:
  using Shapes = std::vector<std::pair<std::string, std::vector<Index>>>;

  /// The tensors in the order in which their values will come. Throws Error(files).
  SafetensorsWriter(const std::filesystem::path& path, const Shapes& tensors);

  /// The next values, of whichever tensor is due. Throws Error(files).
  void append(std::span<const float> values);

  /// Throws Error(files) if the disk did not take all.
  void finish();

 private:
  std::filesystem::path path_;
  AtomicFile file_;
  Index elements_left_ = 0;
};

/// Whether there is a regular file at `path` that a SafetensorsWriter wrote.
bool is_written_by_kzero(const std::filesystem::path& path);

}  // namespace kzero::convert
