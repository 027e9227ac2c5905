#include "data/token_file.hpp"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <span>
#include <unordered_set>

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace kzero::data {

namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr std::int32_t llmc_magic = 20240520;
constexpr std::int32_t llmc_version = 1;
constexpr Index llmc_header_bytes = 256 * 4;
constexpr Index scan_piece = Index{1} << 23;  // tokens; bounds what a scan keeps resident

template <class Stored>
Index position_of_max(const Stored* tokens, Index count) {
  return std::max_element(tokens, tokens + count) - tokens;
}

// A plain reduction, which compilers turn into vector instructions; positions are looked up on
// error only.
template <class Stored>
Index largest(const Stored* tokens, Index count) {
  Stored result = 0;
  for (Index i = 0; i < count; ++i) result = std::max(result, tokens[i]);
  return result;
}

}  // namespace

std::vector<std::string> expand_files(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  std::unordered_set<std::string> seen;
  for (const std::string& pattern : patterns) {
    glob_t matches{};
    const int status = ::glob(pattern.c_str(), 0, nullptr, &matches);
    bool found = false;
    for (std::size_t i = 0; status == 0 && i < matches.gl_pathc; ++i) {
      const std::string path = matches.gl_pathv[i];
      if (!std::filesystem::is_regular_file(path)) continue;
      found = true;
      if (seen.insert(std::filesystem::path(path).lexically_normal()).second) files.push_back(path);
    }
    ::globfree(&matches);
    KZERO_REQUIRE(
        found, ExitCode::files,
        "[data]: \"{}\" matches no file (looked for in {}); give a path or a glob that does",
        pattern, std::filesystem::current_path().string());
  }
  KZERO_REQUIRE(!files.empty(), ExitCode::files, "[data]: no files are named; name at least one");
  return files;
}

/// One mapped file: where its tokens lie and how many there are.
class TokenStream::File {
 public:
  File(std::string path, deck::DataFormat format) : path_(std::move(path)) {
    map();
    if (format == deck::DataFormat::bytes) {
      count_ = bytes_;
    } else {
      check_llmc_header();
      offset_ = llmc_header_bytes;
    }
  }
  ~File() {
    if (bytes_ > 0) ::munmap(map_, static_cast<std::size_t>(bytes_));
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  Index count() const { return count_; }

  template <class Stored>
  const Stored* tokens() const {
    return reinterpret_cast<const Stored*>(static_cast<const std::byte*>(map_) + offset_);
  }

  std::uint64_t digest() const {
    const std::string name = std::filesystem::path(path_).filename();
    const std::array<std::uint64_t, 3> parts{
        checksum(std::as_bytes(std::span(name))), static_cast<std::uint64_t>(bytes_),
        checksum({static_cast<const std::byte*>(map_), static_cast<std::size_t>(offset_)})};
    return checksum(std::as_bytes(std::span(parts)));
  }

  /// Gives back the memory of pages that a scan touched, so that they do not count as resident.
  void drop_pages() const {
    if (bytes_ > 0) ::madvise(map_, static_cast<std::size_t>(bytes_), MADV_DONTNEED);
  }

 private:
  void map() {
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    KZERO_REQUIRE(descriptor >= 0, ExitCode::files, "{}: cannot be opened for reading: {}", path_,
                  std::strerror(errno));
    struct stat status {};
    const bool known = ::fstat(descriptor, &status) == 0;
    if (known && status.st_size > 0) {
      map_ = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED,
                    descriptor, 0);
    }
    const int reason = errno;
    ::close(descriptor);
    KZERO_REQUIRE(known && map_ != MAP_FAILED, ExitCode::files,
                  "{}: cannot be mapped into memory: {}", path_, std::strerror(reason));
    bytes_ = status.st_size;
  }

  void check_llmc_header() {
    KZERO_REQUIRE(bytes_ >= llmc_header_bytes, ExitCode::files,
                  "{}: {} bytes are too short for the {} byte header of format \"llmc\"; "
                  "use data.format = \"bytes\" for plain text",
                  path_, bytes_, llmc_header_bytes);
    std::array<std::int32_t, 3> header{};
    std::memcpy(header.data(), map_, sizeof header);
    KZERO_REQUIRE(header[0] == llmc_magic, ExitCode::files,
                  "{}: starts with {}, but a file of format \"llmc\" starts with {}; "
                  "use data.format = \"bytes\" for plain text",
                  path_, header[0], llmc_magic);
    KZERO_REQUIRE(
        header[1] == llmc_version, ExitCode::files,
        "{}: is version {} of format \"llmc\", but only version {} (16-bit tokens) is read", path_,
        header[1], llmc_version);
    count_ = header[2];
    const Index expected = llmc_header_bytes + 2 * count_;
    KZERO_REQUIRE(count_ >= 0 && bytes_ == expected, ExitCode::files,
                  "{}: its header counts {} tokens, which makes {} bytes, but the file has {}; "
                  "it is cut short or damaged: write it again",
                  path_, count_, expected, bytes_);
  }

  std::string path_;
  void* map_ = nullptr;
  Index bytes_ = 0;
  Index offset_ = 0;  // bytes before the first token
  Index count_ = 0;   // tokens
};

TokenStream::TokenStream(const std::vector<std::string>& patterns, deck::DataFormat format)
    : format_(format), starts_{0} {
  for (std::string& path : expand_files(patterns)) {
    files_.push_back(std::make_unique<File>(std::move(path), format));
    starts_.push_back(starts_.back() + files_.back()->count());
  }
}

TokenStream::~TokenStream() = default;

template <class Visit>
void TokenStream::for_each_piece(Index begin, Index count, Visit&& visit) const {
  KZERO_EXPECT(begin >= 0 && count >= 0 && begin + count <= size());
  const Index end = begin + count;
  auto file = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                       starts_.begin() - 1);
  while (begin < end) {
    const Index here = std::min(end, starts_[file + 1]) - begin;
    if (here > 0) visit(*files_[file], begin - starts_[file], here);
    begin += here;
    ++file;
  }
}

void TokenStream::read(Index begin, Index count, Token* out) const {
  for_each_piece(begin, count, [&](const File& file, Index first, Index here) {
    if (format_ == deck::DataFormat::bytes) {
      std::copy_n(file.tokens<std::uint8_t>() + first, here, out);
    } else {
      std::copy_n(file.tokens<std::uint16_t>() + first, here, out);
    }
    out += here;
  });
}

std::uint64_t TokenStream::digest() const {
  std::vector<std::uint64_t> digests;
  for (const auto& file : files_) digests.push_back(file->digest());
  return checksum(std::as_bytes(std::span(digests)));
}

void TokenStream::check_tokens(Index vocab, Index begin, Index count) const {
  const auto check = [&](const auto* stored, const File& file, Index first, Index here) {
    using Stored = std::remove_cvref_t<decltype(*stored)>;
    if (vocab > std::numeric_limits<Stored>::max()) return;
    for (Index piece = first; piece < first + here; piece += scan_piece) {
      const Index length = std::min(scan_piece, first + here - piece);
      const Index value = largest(stored + piece, length);
      KZERO_REQUIRE(value < vocab, ExitCode::files,
                    "{}: token {} (counted from 0) is {}, but model.vocab = {} allows 0 to {}; "
                    "raise model.vocab to at least {} or use other data",
                    file.path(), piece + position_of_max(stored + piece, length), value, vocab,
                    vocab - 1, value + 1);
      file.drop_pages();
    }
  };
  for_each_piece(begin, count, [&](const File& file, Index first, Index here) {
    if (format_ == deck::DataFormat::bytes) {
      check(file.tokens<std::uint8_t>(), file, first, here);
    } else {
      check(file.tokens<std::uint16_t>(), file, first, here);
    }
  });
}

}  // namespace kzero::data
