#include "data/token_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "data/file_list.hpp"
#include "data/formats.hpp"

namespace kzero::data {

namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr std::size_t read_bytes = 1 << 14;   // at once; on the stack
constexpr std::size_t check_bytes = 1 << 20;  // at once

// A plain reduction, which compilers vectorize. Positions are looked up only when needed.
template <class Stored>
Index largest(std::span<const Stored> tokens) {
  Stored result = 0;
  for (const Stored token : tokens) result = std::max(result, token);
  return result;
}

/// The position of the first token that is at least `vocab`; there must be one.
template <class Stored>
Index first_beyond(Index vocab, std::span<const Stored> tokens) {
  return std::ranges::find_if(tokens, [&](Stored token) { return Index{token} >= vocab; }) -
         tokens.begin();
}

/// Calls f with a zero of the type in which tokens of `width` bytes are stored.
template <class F>
void with_stored(Index width, const F& f) {
  if (width == 1) return f(std::uint8_t{});
  if (width == 2) return f(std::uint16_t{});
  f(std::uint32_t{});
}

}  // namespace

TokenFile::TokenFile(const std::string& path, TokenEncoding encoding)
    : file_(path), encoding_(encoding) {
  struct stat status {};
  if (!file_.open(status)) refuse_to_open(errno);
  require_regular(path, status.st_mode);
  bytes_ = status.st_size;
  read_head();
}

void TokenFile::refuse_to_open(int problem) const {
  std::string reason = reason_of(problem, path());
  const bool is_prefix =
      encoding_.format == deck::DataFormat::megatron && std::filesystem::exists(path() + ".bin");
  if (is_prefix) reason += fmt::format("; name {}.bin", path());
  fail(ExitCode::files, "{}: cannot be opened for reading: {}", path(), reason);
}

void TokenFile::read_head() {
  std::array<std::byte, llmc_header_bytes> buffer;
  const Index loaded = file_.read(buffer, 0);
  const std::span<const std::byte> head(buffer.data(), static_cast<std::size_t>(loaded));
  refuse_other_format(path(), head, encoding_.format);
  layout_ = format_of(encoding_.format).layout({path(), head, bytes_}, encoding_.token_bytes);
  header_digest_ = head_digest(head.first(static_cast<std::size_t>(layout_.offset)));
}

/// A digest of the header or, for files without one, of how tokens are stored.
std::uint64_t TokenFile::head_digest(std::span<const std::byte> head) const {
  if (format_of(encoding_.format).has_own_width) return checksum(head);
  const std::array<Index, 2> storage{layout_.width, layout_.is_signed ? 1 : 0};
  return checksum(std::as_bytes(std::span(storage)));
}

/// The smallest stored number that is not a token: `vocab`, or the first that represents a negative
/// one.
Index TokenFile::bound(Index vocab) const {
  return layout_.is_signed ? std::min(vocab, Index{1} << (8 * layout_.width - 1)) : vocab;
}

/// The token that a stored number represents.
Index TokenFile::shown(Index token) const {
  const Index numbers = Index{1} << (8 * layout_.width);
  return layout_.is_signed && token >= numbers / 2 ? token - numbers : token;
}

template <class Stored>
void TokenFile::load_tokens(Index begin, std::span<Stored> tokens) const {
  constexpr Index width = sizeof(Stored);
  const Index loaded = file_.read(std::as_writable_bytes(tokens), layout_.offset + begin * width);
  if (loaded == static_cast<Index>(tokens.size_bytes())) return;
  fail(ExitCode::files,
       "{}: token {} (counted from 0) cannot be read: the file had {} bytes when it was opened and "
       "has {} now; it was truncated while the run was using it: restore it and start again",
       path(), begin + loaded / width, bytes_, file_.size_now());
}

template <class Stored>
void TokenFile::read_as(Index begin, Index count, Index vocab, Token* out) const {
  std::array<Stored, read_bytes / sizeof(Stored)> buffer;
  while (count > 0) {
    const auto here = std::min(count, static_cast<Index>(buffer.size()));
    const std::span<Stored> tokens(buffer.data(), static_cast<std::size_t>(here));
    load_tokens(begin, tokens);
    if (largest<Stored>(tokens) >= bound(vocab)) {
      const Index at = first_beyond<Stored>(bound(vocab), tokens);
      fail(ExitCode::files,
           "{}: token {} (counted from 0) is {}, but model.vocab = {} allows 0 to {}; it was "
           "overwritten while the run was using it: restore it and start again",
           path(), begin + at, shown(tokens[at]), vocab, vocab - 1);
    }
    out = std::copy(tokens.begin(), tokens.end(), out);
    begin += here;
    count -= here;
  }
}

template <class Stored>
void TokenFile::check_as(Index begin, Index count, Index vocab) const {
  if (bound(vocab) > std::numeric_limits<Stored>::max()) return;
  std::vector<Stored> buffer(
      std::min(static_cast<std::size_t>(count), check_bytes / sizeof(Stored)));
  Index first = -1, value = 0, largest_token = 0;
  for (const Index end = begin + count; begin < end;) {
    const auto here = std::min(end - begin, static_cast<Index>(buffer.size()));
    const auto tokens = std::span(buffer).first(static_cast<std::size_t>(here));
    load_tokens(begin, tokens);
    largest_token = std::max(largest_token, largest<Stored>(tokens));
    if (first < 0 && largest_token >= bound(vocab)) {
      const Index at = first_beyond<Stored>(bound(vocab), tokens);
      first = begin + at;
      value = tokens[at];
    }
    begin += here;
  }
  KZERO_REQUIRE(first < 0, ExitCode::files,
                "{}: token {} (counted from 0) is {}, but model.vocab = {} allows 0 to {}; {}",
                path(), first, shown(value), vocab, vocab - 1,
                vocabulary_advice(shown(largest_token)));
}

void TokenFile::read(Index begin, Index count, Index vocab, Token* out) const {
  KZERO_EXPECT(begin >= 0 && count >= 0 && begin + count <= layout_.count);
  with_stored(layout_.width,
              [&](auto stored) { read_as<decltype(stored)>(begin, count, vocab, out); });
}

void TokenFile::check(Index begin, Index count, Index vocab) const {
  KZERO_EXPECT(begin >= 0 && count >= 0 && begin + count <= layout_.count);
  with_stored(layout_.width, [&](auto stored) { check_as<decltype(stored)>(begin, count, vocab); });
}

}  // namespace kzero::data
