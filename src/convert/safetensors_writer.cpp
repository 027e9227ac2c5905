#include "convert/safetensors_writer.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/float16.hpp"
#include "convert/safetensors.hpp"

namespace kzero::convert {

namespace {

constexpr Index alignment = 8;  // of the data; the header is padded with blanks
constexpr const char* writer_key = "writer";
constexpr const char* writer = "kzero";
constexpr std::size_t round_elements = std::size_t{1} << 16;  // rounded at once

const char* format_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return "BF16";
    case Dtype::fp16:
      return "F16";
    default:
      return "F32";
  }
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, const Shapes& tensors,
                                     Dtype dtype, const std::map<std::string, std::string>& notes)
    : path_(path), file_(path), dtype_(dtype) {
  nlohmann::json header{{"__metadata__", {{"format", "pt"}, {writer_key, writer}}}};
  for (const auto& [key, text] : notes) header["__metadata__"][key] = text;
  for (const auto& [name, shape] : tensors) {
    Index elements = 1;
    for (const Index extent : shape) elements *= extent;
    const Index begin = elements_left_ * bytes_of(dtype);
    elements_left_ += elements;
    header[name] = {{"dtype", format_name(dtype)},
                    {"shape", shape},
                    {"data_offsets", {begin, elements_left_ * bytes_of(dtype)}}};
  }
  std::string text = header.dump();
  text.resize(round_up(static_cast<Index>(text.size()), alignment), ' ');
  const std::uint64_t bytes = text.size();
  file_.append(std::as_bytes(std::span(&bytes, 1)));
  file_.append(std::as_bytes(std::span(text)));
}

void SafetensorsWriter::append(std::span<const float> values) {
  elements_left_ -= static_cast<Index>(values.size());
  KZERO_REQUIRE(elements_left_ >= 0, ExitCode::other, "internal error: too many values for {}",
                path_.string());
  if (dtype_ == Dtype::bf16) return append_as<bf16>(values);
  if (dtype_ == Dtype::fp16) return append_as<fp16>(values);
  file_.append(std::as_bytes(values));
}

template <class T>
void SafetensorsWriter::append_as(std::span<const float> values) {
  std::vector<T> rounded;
  while (!values.empty()) {
    const auto chunk = values.first(std::min(round_elements, values.size()));
    rounded.resize(chunk.size());
    std::ranges::transform(chunk, rounded.begin(), [](float value) { return T(value); });
    file_.append(std::as_bytes(std::span(rounded)));
    values = values.subspan(chunk.size());
  }
}

void SafetensorsWriter::sync() { file_.sync(); }

void SafetensorsWriter::finish() {
  KZERO_REQUIRE(elements_left_ == 0, ExitCode::other, "internal error: {} values are missing in {}",
                elements_left_, path_.string());
  file_.finish();
}

bool is_written_by_kzero(const std::filesystem::path& path) {
  try {
    const SafetensorsFile file(path);
    const auto found = file.metadata().find(writer_key);
    return found != file.metadata().end() && found->second == writer;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace kzero::convert
