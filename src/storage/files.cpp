#include "storage/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/uninterrupted.hpp"

namespace kzero::storage {

namespace {

/// Bytes read at once when a checksum is taken: small enough for the second-level cache.
constexpr Index chunk_bytes = Index{1} << 18;

void require(bool good, const std::string& path, const char* what) {
  KZERO_REQUIRE(good, ExitCode::files, "{}: {} ({})", path, what, std::strerror(errno));
}

int open_file(const std::string& path, int flags) {
  const int id = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  require(id >= 0, path, "cannot be opened");
  return id;
}

void sync(int id, const std::string& path) {
  require(uninterrupted([&] { return ::fsync(id); }) == 0, path, "cannot be written to the disk");
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const auto folder = path.parent_path();
  return folder.empty() ? "." : folder;
}

/// A file or folder that was written before, open to be synced.
struct OpenForSync {
  explicit OpenForSync(const std::string& path) : id(open_file(path, O_RDONLY)) {}
  ~OpenForSync() { ::close(id); }
  OpenForSync(const OpenForSync&) = delete;
  OpenForSync& operator=(const OpenForSync&) = delete;

  int id;
};

}  // namespace

void sync_to_disk(const std::filesystem::path& path) {
  const OpenForSync opened(path.string());
  sync(opened.id, path.string());
}

void begin_sync(const std::filesystem::path& path) {
  const OpenForSync opened(path.string());
  ::sync_file_range(opened.id, 0, 0, SYNC_FILE_RANGE_WRITE);  // only saves time, so it may fail
}

void create_folders_durably(const std::filesystem::path& path) {
  if (path.filename().empty() && path.has_relative_path()) {
    return create_folders_durably(path.parent_path());  // "name/"
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return;
  create_folders_durably(folder_of(path));
  std::filesystem::create_directory(path, error);  // another process may be faster
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be created ({})", path.string(),
                error.message());
  sync_to_disk(folder_of(path));
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be renamed to {} ({})", from.string(),
                to.filename().string(), error.message());
  sync_to_disk(folder_of(to));
}

void write_durably(const std::filesystem::path& path, std::string_view bytes) {
  auto fresh = path;
  fresh += ".partial";
  try {
    // An existing file of that name, even a link to a file elsewhere, is not written through.
    ::unlink(fresh.c_str());
    OutputFile file(fresh);
    file.write(0, std::as_bytes(std::span(bytes)));
    file.sync();
    file.close();
    rename_durably(fresh, path);
  } catch (const Error&) {
    std::error_code ignored;
    std::filesystem::remove(fresh, ignored);
    throw;
  }
}

std::string load_file(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string bytes(static_cast<std::size_t>(file.bytes()), '\0');
  bytes.resize(file.read(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

std::vector<Region> gaps_between(std::vector<Region> regions, Index bytes) {
  std::ranges::sort(regions, {}, &Region::offset);
  std::vector<Region> gaps;
  Index at = 0;
  for (const Region& region : regions) {
    if (region.offset > at) gaps.push_back({at, region.offset - at});
    at = std::max(at, region.offset + region.bytes);
  }
  if (bytes > at) gaps.push_back({at, bytes - at});
  return gaps;
}

OutputFile::OutputFile(const std::filesystem::path& path)
    : path_(path.string()), id_(open_file(path_, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW)) {}

OutputFile::~OutputFile() {
  if (id_ >= 0) ::close(id_);
}

void OutputFile::write(Index offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto written =
        uninterrupted([&] { return ::pwrite(id_, bytes.data(), bytes.size(), offset); });
    require(written >= 0, path_, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
}

void OutputFile::allocate(Index bytes) const {
  // This call returns its error rather than leaving it in errno.
  do {
    errno = ::posix_fallocate(id_, 0, bytes);
  } while (errno == EINTR);
  require(errno == 0, path_, "cannot be written");
}

void OutputFile::sync() const { storage::sync(id_, path_); }

void OutputFile::close() {
  // Linux has closed the file when it reports an interruption, and its bytes are synced before.
  const bool closed = ::close(std::exchange(id_, -1)) == 0 || errno == EINTR;
  require(closed, path_, "cannot be closed");
}

InputFile::InputFile(const std::filesystem::path& path)
    : path_(path.string()), id_(open_file(path_, O_RDONLY | O_NONBLOCK)) {
  struct stat status {};
  if (::fstat(id_, &status) == 0 && S_ISREG(status.st_mode)) return;
  ::close(id_);
  fail(ExitCode::files, "{}: is {}, not a regular file", path_,
       S_ISDIR(status.st_mode) ? "a folder" : "a pipe, a device or a socket");
}

InputFile::~InputFile() { ::close(id_); }

Index InputFile::bytes() const {
  struct stat status {};
  require(::fstat(id_, &status) == 0, path_, "has no size");
  return status.st_size;
}

Index InputFile::read(Index offset, std::span<std::byte> to) const {
  Index done = 0;
  while (done < static_cast<Index>(to.size())) {
    const auto count = uninterrupted(
        [&] { return ::pread(id_, to.data() + done, to.size() - done, offset + done); });
    require(count >= 0, path_, "reading failed");
    if (count == 0) break;
    done += count;
  }
  return done;
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

}  // namespace kzero::storage
