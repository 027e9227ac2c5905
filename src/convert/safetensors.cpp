#include "convert/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.hpp"
#include "base/float16.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "convert/model_file.hpp"

namespace kzero::convert {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using Json = nlohmann::json;

constexpr const char* metadata_name = "__metadata__";
constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t header_limit = 100'000'000;  // of the format
constexpr Index widen_elements = Index{1} << 18;     // converted to fp32 at once

const std::map<std::string, Index>& bytes_of_dtypes() {
  static const std::map<std::string, Index> table{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  return table;
}

/// A violated rule of the format, without the file's name.
struct Malformed {
  std::string what;
};

template <class... Args>
void demand(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw Malformed{fmt::format(text, std::forward<Args>(args)...)};
}

/// Parses a list of counts; each fits an Index.
std::vector<Index> counts_of(const Json& entry, const char* key, const std::string& tensor) {
  const auto found = entry.find(key);
  demand(found != entry.end() && found->is_array(), "tensor {} has no list \"{}\"", tensor, key);
  std::vector<Index> counts;
  for (const Json& value : *found) {
    demand(value.is_number_unsigned() &&
               value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<Index>::max()},
           "tensor {}: \"{}\" holds something that is not a count", tensor, key);
    counts.push_back(value.get<Index>());
  }
  return counts;
}

Tensor tensor_of(const std::string& name, const Json& entry, Index data_begin, Index data_bytes) {
  const std::string shown = printable(name);
  demand(entry.is_object(), "tensor {} is not described by an object", shown);
  const auto dtype = entry.find("dtype");
  demand(dtype != entry.end() && dtype->is_string(), "tensor {} has no \"dtype\"", shown);
  Tensor tensor{.name = name, .dtype = dtype->get<std::string>()};
  const auto known = bytes_of_dtypes().find(tensor.dtype);
  demand(known != bytes_of_dtypes().end(), "tensor {} is of unknown dtype {}", shown,
         printable(tensor.dtype));
  tensor.shape = counts_of(entry, "shape", shown);
  const auto offsets = counts_of(entry, "data_offsets", shown);
  demand(offsets.size() == 2 && offsets[0] <= offsets[1],
         "tensor {}: \"data_offsets\" is not [begin, end]", shown);
  demand(offsets[1] <= data_bytes, "tensor {} ends at byte {} of {} bytes of data", shown,
         offsets[1], data_bytes);
  Index bytes = known->second;
  for (const Index extent : tensor.shape) {
    demand(!__builtin_mul_overflow(bytes, extent, &bytes), "tensor {} is impossibly large", shown);
  }
  demand(bytes == offsets[1] - offsets[0], "tensor {} has {} bytes, its shape and dtype need {}",
         shown, offsets[1] - offsets[0], bytes);
  tensor.begin = data_begin + offsets[0];
  tensor.end = data_begin + offsets[1];
  return tensor;
}

std::map<std::string, std::string> metadata_of(const Json& entry) {
  demand(entry.is_object(), "its {} is not an object", metadata_name);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : entry.items()) {
    demand(value.is_string(), "its {} holds a {} that is not a text", metadata_name,
           printable(key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Checks that the tensors cover the file up to its end without overlap or gap.
void check_tiling(const std::vector<Tensor>& tensors, Index data_begin, Index file_bytes) {
  Index end = data_begin;
  for (const Tensor& tensor : tensors) {
    demand(tensor.begin >= end, "tensor {} overlaps the one before it", printable(tensor.name));
    demand(tensor.begin == end, "there is a gap of {} bytes before tensor {}", tensor.begin - end,
           printable(tensor.name));
    end = tensor.end;
  }
  demand(end == file_bytes, "{} bytes after the last tensor do not belong to any tensor",
         file_bytes - end);
}

SafetensorsHeader parse(std::span<const std::byte> start, Index file_bytes) {
  demand(start.size() >= length_bytes, "it has {} bytes, too few for a header", file_bytes);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, start.data(), length_bytes);
  demand(header_bytes <= header_limit, "its header of {} bytes is larger than the format allows",
         header_bytes);
  const auto data_begin = static_cast<Index>(length_bytes + header_bytes);
  demand(data_begin <= file_bytes, "its header of {} bytes ends beyond the file", header_bytes);
  demand(static_cast<Index>(start.size()) >= data_begin, "it became shorter while it was read");
  const auto* text = reinterpret_cast<const char*>(start.data()) + length_bytes;
  const Json json = parse_json({text, static_cast<std::size_t>(header_bytes)});
  demand(json.is_object(), "its header is not a JSON object");
  SafetensorsHeader header;
  for (const auto& [name, entry] : json.items()) {
    if (name == metadata_name) {
      header.metadata = metadata_of(entry);
    } else {
      header.tensors.push_back(tensor_of(name, entry, data_begin, file_bytes - data_begin));
    }
  }
  std::ranges::sort(header.tensors, [](const Tensor& a, const Tensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_tiling(header.tensors, data_begin, file_bytes);
  return header;
}

/// Reads the length of the header and, if it is plausible, the header.
std::vector<std::byte> read_start(const InputFile& file) {
  std::vector<std::byte> bytes(std::min<std::size_t>(length_bytes, file.bytes()));
  bytes.resize(file.read(0, bytes));
  if (bytes.size() < length_bytes) return bytes;
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), length_bytes);
  const auto rest = static_cast<std::uint64_t>(file.bytes()) - length_bytes;
  if (header_bytes > header_limit || header_bytes > rest) return bytes;
  bytes.resize(length_bytes + header_bytes);
  bytes.resize(file.read(0, bytes));
  return bytes;
}

template <class T>
void widen(std::span<const std::byte> stored, std::span<float> values) {
  const std::byte* source = stored.data();
  for (float& value : values) {
    T narrow;
    std::memcpy(&narrow, source, sizeof narrow);
    value = static_cast<float>(narrow);
    source += sizeof narrow;
  }
}

}  // namespace

Index Tensor::elements() const {
  Index product = 1;
  for (const Index extent : shape) product *= extent;
  return product;
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> start, Index file_bytes,
                                    const std::string& name) {
  try {
    return parse(start, file_bytes);
  } catch (const Malformed& malformed) {
    fail(ExitCode::files, "{}: is not a good safetensors file: {}", printable(name),
         malformed.what);
  }
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path),
      file_(path),
      header_(parse_safetensors(read_start(file_), file_.bytes(), path.string())),
      by_name_(tensors().size()) {
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::ranges::sort(
      by_name_, {}, [this](std::size_t i) -> auto& { return tensors()[i].name; });
}

const Tensor* SafetensorsFile::find(const std::string& name) const {
  const auto name_at = [this](std::size_t i) -> auto& { return tensors()[i].name; };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_at);
  return found == by_name_.end() || name_at(*found) != name ? nullptr : &tensors()[*found];
}

void SafetensorsFile::read_bytes(Index begin, std::span<std::byte> bytes) const {
  const Index count = file_.read(begin, bytes);
  KZERO_REQUIRE(count == static_cast<Index>(bytes.size()), ExitCode::files,
                "{}: became shorter while it was read", printable(path_.string()));
}

template <class T>
void SafetensorsFile::read_widened(Index begin, std::span<float> values) const {
  constexpr auto max_elements = static_cast<std::size_t>(widen_elements);
  std::vector<std::byte> stored(std::min(max_elements, values.size()) * sizeof(T));
  while (!values.empty()) {
    const auto chunk = values.first(std::min(max_elements, values.size()));
    const auto bytes = std::span(stored).first(chunk.size() * sizeof(T));
    read_bytes(begin, bytes);
    widen<T>(bytes, chunk);
    begin += static_cast<Index>(bytes.size());
    values = values.subspan(chunk.size());
  }
}

void SafetensorsFile::read(const Tensor& tensor, checkpoint::Range range,
                           std::span<float> values) const {
  KZERO_REQUIRE(range.begin >= 0 && range.begin <= tensor.elements() &&
                    range.count <= tensor.elements() - range.begin &&
                    range.count == static_cast<Index>(values.size()),
                ExitCode::other, "internal error: elements [{}, +{}) of {} into {} values",
                range.begin, range.count, printable(tensor.name), values.size());
  if (tensor.dtype == "F32") {
    read_bytes(tensor.begin + range.begin * 4, std::as_writable_bytes(values));
  } else if (tensor.dtype == "BF16") {
    read_widened<bf16>(tensor.begin + range.begin * 2, values);
  } else if (tensor.dtype == "F16") {
    read_widened<fp16>(tensor.begin + range.begin * 2, values);
  } else {
    fail(ExitCode::files, "{}: tensor {} is of dtype {}; weights have to be F32, F16 or BF16",
         printable(path_.string()), printable(tensor.name), tensor.dtype);
  }
}

}  // namespace kzero::convert
