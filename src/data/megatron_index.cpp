#include "data/megatron_index.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/error.hpp"

namespace kzero::data {

namespace {

using namespace std::string_view_literals;

constexpr auto magic = "MMIDIDX\0\0"sv;
constexpr std::uint64_t version = 1;
constexpr Index head_bytes = 34;        // magic, version, type, sequences, documents
constexpr Index length_bytes = 4;       // of a sequence's length, in tokens
constexpr Index offset_bytes = 8;       // of its place, in bytes
constexpr Index document_bytes = 8;     // of a document's first sequence
constexpr std::size_t chunk = 1 << 14;  // sequences read at once
constexpr const char* again = "write the dataset again";

struct TokenType {
  std::uint8_t code;
  Index width;  // 0: its tokens are not read
  bool is_signed;
  const char* name;
};

constexpr TokenType token_types[] = {
    {1, 1, false, "uint8"},  {2, 1, true, "int8"},    {3, 2, true, "int16"},
    {4, 4, true, "int32"},   {5, 0, true, "int64"},   {6, 0, true, "float64"},
    {7, 0, true, "float32"}, {8, 2, false, "uint16"},
};

struct Head {
  std::array<char, magic.size()> name;
  std::uint64_t version, sequences, documents;
  std::uint8_t type;
};

class IndexFile {
 public:
  explicit IndexFile(std::filesystem::path path)
      : path_(std::move(path)), file_(path_, std::ios::binary) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path_, error);
    KZERO_REQUIRE(!error && file_, ExitCode::files,
                  "{}: cannot be read ({}); data.format = \"megatron\" needs the .idx of each .bin "
                  "beside it",
                  path_.string(), error ? error.message() : std::strerror(errno));
    bytes_ = static_cast<Index>(size);
  }

  const std::filesystem::path& path() const { return path_; }

  /// Reads the head; afterwards its numbers agree with the size of the index.
  Head read_head() {
    Head head{};
    KZERO_REQUIRE(bytes_ >= head_bytes, ExitCode::files,
                  "{}: {} bytes are too short for the {} byte head of a Megatron-LM index",
                  path_.string(), bytes_, head_bytes);
    const auto read = [&](auto& value) { read_values(std::span(&value, 1)); };
    read(head.name);
    KZERO_REQUIRE(std::string_view(head.name.data(), head.name.size()) == magic, ExitCode::files,
                  "{}: does not start as an index of Megatron-LM does (MMIDIDX and two zeros)",
                  path_.string());
    read(head.version);
    KZERO_REQUIRE(head.version == version, ExitCode::files,
                  "{}: is version {} of Megatron-LM's index, but only version {} is read",
                  path_.string(), head.version, version);
    read(head.type);
    read(head.sequences);
    read(head.documents);
    require_size(head);
    return head;
  }

  template <class T>
  void read_values(std::span<T> values, Index offset) {
    file_.seekg(offset);
    read_values(values);
  }

 private:
  template <class T>
  void read_values(std::span<T> values) {
    file_.read(reinterpret_cast<char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
    KZERO_REQUIRE(file_.good(), ExitCode::files, "{}: reading failed: {}", path_.string(),
                  std::strerror(errno));
  }

  /// Modes, a byte a sequence, may follow; they say nothing of tokens.
  void require_size(const Head& head) const {
    constexpr Index sequence_bytes = length_bytes + offset_bytes;
    const bool is_possible =
        head.sequences <= static_cast<std::uint64_t>(bytes_ / sequence_bytes) &&
        head.documents <= static_cast<std::uint64_t>(bytes_ / document_bytes);
    const auto sequences = static_cast<Index>(head.sequences);
    const Index expected = is_possible ? head_bytes + sequences * sequence_bytes +
                                             static_cast<Index>(head.documents) * document_bytes
                                       : -1;
    KZERO_REQUIRE(
        is_possible && (bytes_ == expected || bytes_ == expected + sequences), ExitCode::files,
        "{}: its head counts {} sequences and {} documents, which {} bytes do not hold; it "
        "is truncated or damaged: {}",
        path_.string(), head.sequences, head.documents, bytes_, again);
  }

  std::filesystem::path path_;
  std::ifstream file_;
  Index bytes_ = 0;
};

const TokenType& type_of(const Head& head, const std::filesystem::path& index) {
  for (const TokenType& type : token_types) {
    if (type.code != head.type) continue;
    KZERO_REQUIRE(type.width > 0, ExitCode::files,
                  "{}: its tokens are {}, but only integers of 8, 16 and 32 bits are read",
                  index.string(), type.name);
    return type;
  }
  fail(ExitCode::files, "{}: has tokens of type {}, but Megatron-LM's types are 1 to {}",
       index.string(), head.type, std::size(token_types));
}

/// Adds the sequences one by one to a layout of a file of tokens.
class LayoutBuilder {
 public:
  LayoutBuilder(const std::filesystem::path& index, Index bytes, const TokenType& type)
      : index_(index), bytes_(bytes) {
    layout_.width = type.width;
    layout_.is_signed = type.is_signed;
  }

  void add(Index number, Index length, Index offset) {
    KZERO_REQUIRE(length >= 0, ExitCode::files,
                  "{}: sequence {} (counted from 0) has length {}; {}", index_.string(), number,
                  length, again);
    const Index size = length * layout_.width;
    KZERO_REQUIRE(
        offset >= 0 && offset <= bytes_ && size <= bytes_ - offset, ExitCode::files,
        "{}: sequence {} (counted from 0) has {} bytes from byte {} on, but the .bin beside "
        "it has {}; one of both is truncated, or they do not belong together",
        index_.string(), number, size, offset, bytes_);
    if (length == 0) return;
    auto& extents = layout_.extents;
    if (extents.empty() || end_ != offset) extents.push_back({layout_.count, offset});
    layout_.count += length;
    end_ = offset + size;
    KZERO_REQUIRE(
        layout_.count <= bytes_ / layout_.width, ExitCode::files,
        "{}: its sequences up to {} (counted from 0) have more bytes than the .bin beside "
        "it, {}; they do not belong together",
        index_.string(), number, bytes_);
  }

  TokenLayout finish() {
    KZERO_REQUIRE(layout_.count * layout_.width == bytes_, ExitCode::files,
                  "{}: its sequences have {} bytes, but the .bin beside it has {}; they do not "
                  "belong together, or the dataset was not finished: {}",
                  index_.string(), layout_.count * layout_.width, bytes_, again);
    if (layout_.extents.size() == 1) layout_.extents.clear();  // from byte 0 to the end
    return std::move(layout_);
  }

 private:
  const std::filesystem::path& index_;
  Index bytes_;
  Index end_ = -1;  // of the sequence before
  TokenLayout layout_;
};

}  // namespace

bool is_megatron_index(std::span<const std::byte> head) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

std::filesystem::path megatron_index_of(const std::filesystem::path& tokens) {
  std::filesystem::path index = tokens;
  return index.replace_extension(".idx");
}

TokenLayout megatron_layout(const std::string& path, Index bytes) {
  IndexFile file(megatron_index_of(path));
  const Head head = file.read_head();
  LayoutBuilder builder(file.path(), bytes, type_of(head, file.path()));
  const auto sequences = static_cast<Index>(head.sequences);
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> offsets;
  for (Index begin = 0; begin < sequences; begin += std::ssize(lengths)) {
    const auto here = std::min(chunk, static_cast<std::size_t>(sequences - begin));
    lengths.resize(here);
    offsets.resize(here);
    file.read_values(std::span(lengths), head_bytes + begin * length_bytes);
    file.read_values(std::span(offsets),
                     head_bytes + sequences * length_bytes + begin * offset_bytes);
    for (std::size_t i = 0; i < here; ++i)
      builder.add(begin + static_cast<Index>(i), lengths[i], offsets[i]);
  }
  return builder.finish();
}

}  // namespace kzero::data
