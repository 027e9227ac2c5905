#include "convert/safetensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/float16.hpp"
#include "checkpoint/files.hpp"

namespace kzero::convert {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using Json = nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t header_limit = 100'000'000;  // of the format

const std::map<std::string, Index>& bytes_of_dtypes() {
  static const std::map<std::string, Index> table{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  return table;
}

/// What breaks a rule of the format, without the file's name.
struct Malformed {
  std::string what;
};

template <class... Args>
void demand(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw Malformed{fmt::format(text, std::forward<Args>(args)...)};
}

/// A list of counts; each fits an Index.
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
  demand(entry.is_object(), "tensor {} is not described by an object", name);
  const auto dtype = entry.find("dtype");
  demand(dtype != entry.end() && dtype->is_string(), "tensor {} has no \"dtype\"", name);
  Tensor tensor{.name = name, .dtype = dtype->get<std::string>()};
  const auto known = bytes_of_dtypes().find(tensor.dtype);
  demand(known != bytes_of_dtypes().end(), "tensor {} is of unknown dtype {}", name, tensor.dtype);
  tensor.shape = counts_of(entry, "shape", name);
  const auto offsets = counts_of(entry, "data_offsets", name);
  demand(offsets.size() == 2 && offsets[0] <= offsets[1],
         "tensor {}: \"data_offsets\" is not [begin, end]", name);
  demand(offsets[1] <= data_bytes, "tensor {} ends at byte {} of {} bytes of data", name,
         offsets[1], data_bytes);
  Index bytes = known->second;
  for (const Index extent : tensor.shape) {
    demand(!__builtin_mul_overflow(bytes, extent, &bytes), "tensor {} is impossibly large", name);
  }
  demand(bytes == offsets[1] - offsets[0], "tensor {} has {} bytes, its shape and dtype need {}",
         name, offsets[1] - offsets[0], bytes);
  tensor.begin = data_begin + offsets[0];
  tensor.end = data_begin + offsets[1];
  return tensor;
}

/// Tensors lie one behind the other without overlap or gap up to the file's end.
void check_tiling(const std::vector<Tensor>& tensors, Index data_begin, Index file_bytes) {
  Index end = data_begin;
  for (const Tensor& tensor : tensors) {
    demand(tensor.begin >= end, "tensor {} overlaps the one before it", tensor.name);
    demand(tensor.begin == end, "there is a gap of {} bytes before tensor {}", tensor.begin - end,
           tensor.name);
    end = tensor.end;
  }
  demand(end == file_bytes, "{} bytes behind the last tensor belong to none", file_bytes - end);
}

std::vector<Tensor> parse(std::span<const std::byte> bytes) {
  demand(bytes.size() >= length_bytes, "it has {} bytes, too few for a header", bytes.size());
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), length_bytes);
  demand(header_bytes <= header_limit, "its header of {} bytes is larger than the format allows",
         header_bytes);
  demand(header_bytes <= bytes.size() - length_bytes, "its header of {} bytes ends behind the file",
         header_bytes);
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + length_bytes;
  const Json header = Json::parse(text, text + header_bytes, nullptr, false);
  demand(header.is_object(), "its header is not a JSON object");
  const auto data_begin = static_cast<Index>(length_bytes + header_bytes);
  const auto file_bytes = static_cast<Index>(bytes.size());
  std::vector<Tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    tensors.push_back(tensor_of(name, entry, data_begin, file_bytes - data_begin));
  }
  std::ranges::sort(tensors, [](const Tensor& a, const Tensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_tiling(tensors, data_begin, file_bytes);
  return tensors;
}

template <class T>
void convert_values(const std::byte* source, std::span<float> values) {
  for (float& value : values) {
    T stored;
    std::memcpy(&stored, source, sizeof stored);  // the format promises no alignment
    value = static_cast<float>(stored);
    source += sizeof stored;
  }
}

std::span<const std::byte> map_file(const std::filesystem::path& path) {
  const auto require = [&](bool good) {
    KZERO_REQUIRE(good, ExitCode::files, "{}: cannot be read ({})", path.string(),
                  std::strerror(errno));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(file >= 0);
  struct stat status {};
  void* address = nullptr;
  const bool sized = ::fstat(file, &status) == 0;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (sized && bytes > 0) address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  const int reason = errno;
  ::close(file);
  errno = reason;
  require(sized && address != MAP_FAILED);
  return {static_cast<const std::byte*>(address), bytes};
}

void unmap(std::span<const std::byte> bytes) {
  if (!bytes.empty()) ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
}

}  // namespace

Index Tensor::elements() const {
  Index product = 1;
  for (const Index extent : shape) product *= extent;
  return product;
}

std::vector<Tensor> parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  try {
    return parse(bytes);
  } catch (const Malformed& malformed) {
    fail(ExitCode::files, "{}: is not a good safetensors file: {}", name, malformed.what);
  }
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), bytes_(map_file(path)) {
  try {
    tensors_ = parse_safetensors(bytes_, path.string());
  } catch (...) {
    unmap(bytes_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { unmap(bytes_); }

const Tensor* SafetensorsFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors_, name, &Tensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

void SafetensorsFile::read(const Tensor& tensor, checkpoint::Range range,
                           std::span<float> values) const {
  KZERO_REQUIRE(range.begin >= 0 && range.begin <= tensor.elements() &&
                    range.count <= tensor.elements() - range.begin &&
                    range.count == static_cast<Index>(values.size()),
                ExitCode::other, "internal error: elements [{}, +{}) of {} into {} values",
                range.begin, range.count, tensor.name, values.size());
  const std::byte* begin = bytes_.data() + tensor.begin;
  if (tensor.dtype == "F32") {
    std::memcpy(values.data(), begin + range.begin * 4, values.size_bytes());
  } else if (tensor.dtype == "BF16") {
    convert_values<bf16>(begin + range.begin * 2, values);
  } else if (tensor.dtype == "F16") {
    convert_values<fp16>(begin + range.begin * 2, values);
  } else {
    fail(ExitCode::files, "{}: tensor {} is of dtype {}; weights have to be F32, F16 or BF16",
         path_.string(), tensor.name, tensor.dtype);
  }
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, const Shapes& tensors)
    : path_(path), partial_(path.string() + ".partial"), stream_(partial_, std::ios::binary) {
  Json header{{"__metadata__", {{"format", "pt"}}}};
  for (const auto& [name, shape] : tensors) {
    Index elements = 1;
    for (const Index extent : shape) elements *= extent;
    const Index begin = elements_left_ * 4;
    elements_left_ += elements;
    header[name] = {
        {"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, elements_left_ * 4}}};
  }
  std::string text = header.dump();
  text.resize(round_up(static_cast<Index>(text.size()), length_bytes), ' ');  // aligns the data
  const std::uint64_t bytes = text.size();
  stream_.write(reinterpret_cast<const char*>(&bytes), length_bytes);
  stream_ << text;
  check(stream_.good());
}

SafetensorsWriter::~SafetensorsWriter() {
  std::error_code ignored;
  stream_.close();
  std::filesystem::remove(partial_, ignored);
}

void SafetensorsWriter::check(bool good) const {
  KZERO_REQUIRE(good, ExitCode::files, "{}: writing failed ({})", partial_.string(),
                std::strerror(errno));
}

void SafetensorsWriter::append(std::span<const float> values) {
  elements_left_ -= static_cast<Index>(values.size());
  KZERO_REQUIRE(elements_left_ >= 0, ExitCode::other, "internal error: too many values for {}",
                path_.string());
  stream_.write(reinterpret_cast<const char*>(values.data()),
                static_cast<std::streamsize>(values.size_bytes()));
  check(stream_.good());
}

void SafetensorsWriter::finish() {
  KZERO_REQUIRE(elements_left_ == 0, ExitCode::other, "internal error: {} values are missing in {}",
                elements_left_, path_.string());
  stream_.close();
  check(stream_.good());
  checkpoint::sync_to_disk(partial_);
  checkpoint::rename_durably(partial_, path_);
}

}  // namespace kzero::convert
