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
constexpr Index length_bytes = 4;       // a sequence's length, in tokens
constexpr Index offset_bytes = 8;       // a sequence's place, in bytes
constexpr Index document_bytes = 8;     // a document's first sequence
constexpr std::size_t chunk = 1 << 14;  // sequences read at once
constexpr const char* again = "write the dataset again";

const char* kind_of(std::filesystem::file_type type) {
  if (type == std::filesystem::file_type::directory) return "folder";
  return type == std::filesystem::file_type::fifo ? "FIFO" : "device";
}

struct TokenType {
  std::uint8_t code;
  Index width;  // 0: such tokens are not supported
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
  explicit IndexFile(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code error;
    const auto status = std::filesystem::status(path_, error);
    KZERO_REQUIRE(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status),
                  ExitCode::files, "{}: is a {}, but an index must be a regular file",
                  path_.string(), kind_of(status.type()));
    file_.open(path_, std::ios::binary);
    const auto size = std::filesystem::file_size(path_, error);
    KZERO_REQUIRE(!error && file_, ExitCode::files,
                  "{}: cannot be read ({}); data.format = \"megatron\" needs the .idx of each .bin "
                  "in the same folder",
                  path_.string(), error ? error.message() : std::strerror(errno));
    bytes_ = static_cast<Index>(size);
  }

  const std::filesystem::path& path() const { return path_; }

  /// Reads the head and checks that its numbers agree with the size of the index.
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

  /// Modes, one byte per sequence, may follow; they do not concern tokens.
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
        "{}: its head counts {} sequences and {} documents, which do not fit in {} bytes; it "
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

/// Counts the tokens of sequences that follow one another from the beginning of the .bin.
class SequenceChain {
 public:
  SequenceChain(const std::filesystem::path& index, Index bytes, const TokenType& type)
      : index_(index), bytes_(bytes), width_(type.width) {}

  void add(Index number, Index length, Index offset) {
    KZERO_REQUIRE(length >= 0, ExitCode::files,
                  "{}: sequence {} (counted from 0) has length {}; {}", index_.string(), number,
                  length, again);
    const Index size = length * width_;
    KZERO_REQUIRE(offset >= 0 && offset <= bytes_ && size <= bytes_ - offset, ExitCode::files,
                  "{}: sequence {} (counted from 0) has {} bytes from byte {} on, but its .bin "
                  "has {}; one of the two is truncated, or they do not belong together",
                  index_.string(), number, size, offset, bytes_);
    KZERO_REQUIRE(offset == end_, ExitCode::files,
                  "{}: sequence {} (counted from 0) begins at byte {}, but must begin at byte {}: "
                  "Megatron-LM writes sequences without gap or overlap in the order of the index; "
                  "{}",
                  index_.string(), number, offset, end_, again);
    end_ += size;
  }

  /// The number of tokens.
  Index finish() const {
    KZERO_REQUIRE(end_ == bytes_, ExitCode::files,
                  "{}: its sequences have {} bytes, but its .bin has {}; they do not "
                  "belong together, or the dataset was not finished: {}",
                  index_.string(), end_, bytes_, again);
    return end_ / width_;
  }

 private:
  const std::filesystem::path& index_;
  Index bytes_;
  Index width_;
  Index end_ = 0;  // of the previous sequence
};

}  // namespace

bool is_megatron_index(std::span<const std::byte> head) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

std::filesystem::path megatron_index_of(const std::filesystem::path& tokens) {
  std::filesystem::path index = tokens;
  return index.replace_extension(".idx");
}

TokenLayout megatron_layout(const OpenedFile& tokens, Index /*raw_bytes*/) {
  IndexFile file(megatron_index_of(tokens.path));
  const Head head = file.read_head();
  const TokenType& type = type_of(head, file.path());
  SequenceChain chain(file.path(), tokens.bytes, type);
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
      chain.add(begin + static_cast<Index>(i), lengths[i], offsets[i]);
  }
  return {.width = type.width, .count = chain.finish(), .is_signed = type.is_signed};
}

}  // namespace kzero::data
