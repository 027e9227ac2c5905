// Writes safetensors files of one floating-point type as a stream. It is independent of models.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "storage/atomic_file.hpp"

namespace kzero::convert {

/// Writes a file of tensors of one type. Only the values given to append() are in memory. The file
/// gets its name in finish(); without that call nothing remains. Its metadata names kzero as the
/// writer.
class SafetensorsWriter {
 public:
  using Shapes = std::vector<std::pair<std::string, std::vector<Index>>>;

  /// Begins a file; `tensors` are in the order in which their values will be appended. `notes` are
  /// further entries of its metadata. Throws Error(files).
  SafetensorsWriter(const std::filesystem::path& path, const Shapes& tensors,
                    Dtype dtype = Dtype::fp32,
                    const std::map<std::string, std::string>& notes = {});

  /// Appends the next values, continuing with the next tensor when one is complete, rounded to the
  /// file's type. Throws Error(files).
  void append(std::span<const float> values);

  /// Waits until all values are on the disk, so that finish() cannot fill the disk. Throws
  /// Error(files).
  void sync();

  /// Completes the file and gives it its name. Throws Error(files) if the disk is full.
  void finish();

 private:
  template <class T>
  void append_as(std::span<const float> values);

  std::filesystem::path path_;
  storage::AtomicFile file_;
  Dtype dtype_;
  Index elements_left_ = 0;
};

/// Returns whether a regular file at `path` was written by SafetensorsWriter.
bool is_written_by_kzero(const std::filesystem::path& path);

}  // namespace kzero::convert
