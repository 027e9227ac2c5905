#include "base/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/bytes.hpp"
#include "base/checksum.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace kzero {

namespace {

/// Bytes read at once when a checksum is taken: small enough for the second-level cache.
constexpr Index chunk_bytes = Index{1} << 18;

void require(bool good, const std::string& path, const char* what) {
  KZERO_REQUIRE(good, ExitCode::files, "{}: {} ({})", path, what, std::strerror(errno));
}

/// Returns without waiting even if the path is a pipe that nobody writes.
int open_for_reading(const std::filesystem::path& path) {
  return uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); });
}

/// Returns the number of bytes read, fewer than asked for only at the file's end; -1 and errno for
/// an error.
Index read_at(int file, Index offset, std::span<std::byte> to) {
  Index done = 0;
  while (done < std::ssize(to)) {
    const auto count = uninterrupted(
        [&] { return ::pread(file, to.data() + done, to.size() - done, offset + done); });
    if (count < 0) return -1;
    if (count == 0) break;
    done += count;
  }
  return done;
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path)
    : path_(path.string()), file_(open_for_reading(path)) {
  require(file_.number() >= 0, path_, "cannot be opened");
  struct stat status {};
  const bool is_regular = ::fstat(file_.number(), &status) == 0 && S_ISREG(status.st_mode);
  KZERO_REQUIRE(is_regular, ExitCode::files, "{}: is {}, not a regular file", path_,
                S_ISDIR(status.st_mode) ? "a folder" : "a pipe, a device or a socket");
}

Index InputFile::bytes() const {
  struct stat status {};
  require(::fstat(file_.number(), &status) == 0, path_, "has no size");
  return status.st_size;
}

Index InputFile::read(Index offset, std::span<std::byte> to) const {
  const Index count = read_at(file_.number(), offset, to);
  require(count >= 0, path_, "reading failed");
  return count;
}

std::uint64_t InputFile::checksum(std::span<const Region> regions) const {
  Digest digest;
  Index largest = 0;
  for (const Region& region : regions) largest = std::max(largest, region.bytes);
  std::vector<std::byte> buffer(std::min(largest, chunk_bytes));
  for (const Region& region : regions) {
    Index at = 0;
    while (at < region.bytes) {
      const auto wanted = std::min(region.bytes - at, static_cast<Index>(buffer.size()));
      const Index count = read(region.offset + at, std::span(buffer).first(wanted));
      if (count == 0) break;
      digest.update(std::span(buffer).first(count));
      at += count;
    }
  }
  return digest.value();
}

std::string load_file(const std::filesystem::path& path, Index limit_bytes) {
  const InputFile file(path);
  const Index bytes = file.bytes();
  KZERO_REQUIRE(bytes <= limit_bytes, ExitCode::files,
                "{}: has {}; a file of its kind has {} at most", path.string(), format_bytes(bytes),
                format_bytes(limit_bytes));
  std::string text(static_cast<std::size_t>(bytes), '\0');
  text.resize(file.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

std::optional<std::string> first_bytes(const std::filesystem::path& path, std::size_t count) {
  try {
    const InputFile file(path);
    std::string bytes(count, '\0');
    bytes.resize(file.read(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  } catch (const Error&) {
    return std::nullopt;
  }
}

Loaded try_load(const std::filesystem::path& path, Index limit_bytes) {
  using enum Loaded::State;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {.state = missing, .error = errno};
  if (!S_ISREG(status.st_mode)) return {.state = not_regular};
  const Descriptor file(open_for_reading(path));
  const bool is_open = file.number() >= 0 && ::fstat(file.number(), &status) == 0;
  if (!is_open) return {.state = unreadable, .error = errno};
  if (!S_ISREG(status.st_mode)) return {.state = not_regular};
  Loaded loaded{.file_bytes = status.st_size};
  if (loaded.file_bytes > limit_bytes) {
    loaded.state = too_large;
    return loaded;
  }
  loaded.bytes.resize(static_cast<std::size_t>(loaded.file_bytes));
  const Index count = read_at(file.number(), 0, std::as_writable_bytes(std::span(loaded.bytes)));
  if (count == loaded.file_bytes) return loaded;
  return {.state = unreadable, .error = count < 0 ? errno : 0};
}

}  // namespace kzero
