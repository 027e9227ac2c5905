// Safetensors files: eight bytes of header length, a JSON header with dtype, shape and place of
// each tensor, then the tensors. Reads any file that keeps the format's rules and refuses all
// others; writes float32. Knows no model. https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/piece.hpp"

namespace kzero::convert {

struct Tensor {
  std::string name;
  std::string dtype{};  // as in the file: F32, F16, BF16, ...
  std::vector<Index> shape{};
  Index begin = 0;  // bytes from the start of the file
  Index end = 0;

  Index elements() const;
};

/// The tensors of a file's bytes, in the order in which they lie. Throws Error(files) with `name`
/// and the broken rule for bytes that are no safetensors file; never reads outside of `bytes`.
std::vector<Tensor> parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

/// A memory-mapped file.
class SafetensorsFile {
 public:
  /// Throws Error(files) if it cannot be read or breaks the format's rules.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Null if there is none of that name.
  const Tensor* find(const std::string& name) const;

  /// Elements of a tensor of F32, F16 or BF16 as float32. Throws Error(files) for another dtype.
  void read(const Tensor& tensor, checkpoint::Range range, std::span<float> values) const;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
  std::vector<Tensor> tensors_;
};

/// Writes a file of float32 tensors as a stream: only what append() is given is in memory. The file
/// gets its name in finish(); without it no trace stays.
class SafetensorsWriter {
 public:
  using Shapes = std::vector<std::pair<std::string, std::vector<Index>>>;

  /// The tensors in the order in which their values will come.
  SafetensorsWriter(const std::filesystem::path& path, const Shapes& tensors);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// The next values, of whichever tensor is due. Throws Error(files).
  void append(std::span<const float> values);

  /// Throws Error(files) if the disk did not take all.
  void finish();

 private:
  void check(bool good) const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  std::ofstream stream_;
  Index elements_left_ = 0;
};

}  // namespace kzero::convert
