#include "convert/safetensors_writer.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "convert/safetensors.hpp"

namespace kzero::convert {

namespace {

constexpr Index alignment = 8;  // of the data, which the header's blanks provide
constexpr const char* writer_key = "writer";
constexpr const char* writer = "kzero";

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, const Shapes& tensors)
    : path_(path), file_(path) {
  nlohmann::json header{{"__metadata__", {{"format", "pt"}, {writer_key, writer}}}};
  for (const auto& [name, shape] : tensors) {
    Index elements = 1;
    for (const Index extent : shape) elements *= extent;
    const Index begin = elements_left_ * 4;
    elements_left_ += elements;
    header[name] = {
        {"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, elements_left_ * 4}}};
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
  file_.append(std::as_bytes(values));
}

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
