#include "checkpoint/files.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.hpp"

namespace kzero::checkpoint {

namespace {

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

  /// Bytes read; 0 at the end of the file.
  std::size_t read(char* buffer, std::size_t capacity) const {
    for (;;) {
      const auto count = ::read(id_, buffer, capacity);
      if (count < 0 && errno == EINTR) continue;
      require(count >= 0, "reading failed");
      return static_cast<std::size_t>(count);
    }
  }

 private:
  std::string path_;
  int id_;
};

class Digest {
 public:
  Digest() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void update(const char* bytes, std::size_t count) {
    XXH3_64bits_update(state_.get(), bytes, count);
  }
  std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

}  // namespace

void sync_to_disk(const std::filesystem::path& path) { Descriptor(path, O_RDONLY).sync(); }

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
  const Descriptor file(path, O_RDONLY);
  std::string bytes;
  std::string piece(std::size_t{1} << 20, '\0');
  while (const std::size_t count = file.read(piece.data(), piece.size())) {
    bytes.append(piece, 0, count);
  }
  return bytes;
}

Scan scan_file(const std::filesystem::path& path, const std::vector<Region>& regions) {
  const Descriptor file(path, O_RDONLY);
  Digest whole;
  std::vector<Digest> parts(regions.size());
  std::string piece(std::size_t{1} << 22, '\0');
  Scan scan;
  while (const std::size_t count = file.read(piece.data(), piece.size())) {
    whole.update(piece.data(), count);
    const Index piece_end = scan.bytes + static_cast<Index>(count);
    for (std::size_t i = 0; i < regions.size(); ++i) {
      const Index begin = std::max(scan.bytes, regions[i].offset);
      const Index end = std::min(piece_end, regions[i].offset + regions[i].bytes);
      if (begin < end) parts[i].update(piece.data() + (begin - scan.bytes), end - begin);
    }
    scan.bytes = piece_end;
  }
  scan.checksum = whole.value();
  for (const Digest& part : parts) scan.regions.push_back(part.value());
  return scan;
}

}  // namespace kzero::checkpoint
