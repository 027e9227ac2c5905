#include "checkpoint/files.hpp"

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

namespace kzero::checkpoint {

namespace {

/// Read at once where a checksum is taken: small enough for the second-level cache.
constexpr Index chunk_bytes = Index{1} << 18;

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : path_(path.string()), id_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    require(id_ >= 0, "cannot be opened");
  }
  ~Descriptor() {
    if (id_ >= 0) ::close(id_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void require(bool good, const char* what) const {
    KZERO_REQUIRE(good, ExitCode::files, "{}: {} ({})", path_, what, std::strerror(errno));
  }

  /// Only saves time, so it may fail.
  void begin_sync() const { ::sync_file_range(id_, 0, 0, SYNC_FILE_RANGE_WRITE); }

  void sync() const { require(::fsync(id_) == 0, "cannot be written to the disk"); }

  void close() { require(::close(std::exchange(id_, -1)) == 0, "cannot be closed"); }

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto written = ::write(id_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      require(written >= 0, "writing failed");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

 private:
  std::string path_;
  int id_;
};

}  // namespace

void sync_to_disk(const std::filesystem::path& path) { Descriptor(path, O_RDONLY).sync(); }

void begin_sync(const std::filesystem::path& path) { Descriptor(path, O_RDONLY).begin_sync(); }

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be renamed to {} ({})", from.string(),
                to.filename().string(), error.message());
  const auto folder = to.parent_path();
  sync_to_disk(folder.empty() ? "." : folder);
}

void write_durably(const std::filesystem::path& path, std::string_view bytes) {
  auto fresh = path;
  fresh += ".partial";
  try {
    Descriptor file(fresh, O_WRONLY | O_CREAT | O_TRUNC);
    file.write(bytes);
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

InputFile::InputFile(const std::filesystem::path& path)
    : path_(path.string()), id_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  KZERO_REQUIRE(id_ >= 0, ExitCode::files, "{}: cannot be opened ({})", path_,
                std::strerror(errno));
}

InputFile::~InputFile() { ::close(id_); }

Index InputFile::bytes() const {
  struct stat status {};
  KZERO_REQUIRE(::fstat(id_, &status) == 0, ExitCode::files, "{}: has no size ({})", path_,
                std::strerror(errno));
  return status.st_size;
}

Index InputFile::read(Index offset, std::span<std::byte> to) const {
  Index done = 0;
  while (done < static_cast<Index>(to.size())) {
    const auto count = ::pread(id_, to.data() + done, to.size() - done, offset + done);
    if (count < 0 && errno == EINTR) continue;
    KZERO_REQUIRE(count >= 0, ExitCode::files, "{}: reading failed ({})", path_,
                  std::strerror(errno));
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

}  // namespace kzero::checkpoint
