// Safetensors files: eight bytes of header length, a JSON header with dtype, shape and offsets of
// each tensor, then the tensors. Reads any file that follows the format's rules and refuses all
// others. It is independent of models. https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/input_file.hpp"
#include "checkpoint/format/state_shard.hpp"

namespace kzero::convert {

struct Tensor {
  std::string name;
  std::string dtype{};  // as in the file: F32, F16, BF16, ...
  std::vector<Index> shape{};
  Index begin = 0;  // bytes from the start of the file
  Index end = 0;

  Index elements() const;
};

/// The contents of a header.
struct SafetensorsHeader {
  std::vector<Tensor> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
};

/// Parses a header. `start` is the first bytes of a file, at least to the end of its header;
/// `file_bytes` is the file's size. Throws Error(files) with `name` and the violated rule for bytes
/// that do not begin a safetensors file. Never reads outside of `start`.
SafetensorsHeader parse_safetensors(std::span<const std::byte> start, Index file_bytes,
                                    const std::string& name);

/// A file that is open for reading. Only its header is in memory.
class SafetensorsFile {
 public:
  /// Throws Error(files) if the file cannot be read, is not a regular file or breaks the format's
  /// rules.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<Tensor>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// Finds a tensor by name; null if there is none.
  const Tensor* find(const std::string& name) const;

  /// Reads elements of a tensor of F32, F16 or BF16 as float32. Throws Error(files) for another
  /// dtype, or if the file has become shorter.
  void read(const Tensor& tensor, checkpoint::Range range, std::span<float> values) const;

 private:
  void read_bytes(Index begin, std::span<std::byte> bytes) const;
  template <class T>
  void read_widened(Index begin, std::span<float> values) const;

  std::filesystem::path path_;
  InputFile file_;
  SafetensorsHeader header_;
  std::vector<std::size_t> by_name_;  // positions in tensors(), in the order of their names
};

}  // namespace kzero::convert
