#include "storage/atomic_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "storage/files.hpp"

namespace kzero::storage {

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)),
      partial_(path_.string() + ".partial"),
      id_(create_fresh(partial_, FileLock::exclusive)) {}

AtomicFile::~AtomicFile() {
  if (!finished_) ::unlink(partial_.c_str());
  ::close(id_);
}

void AtomicFile::require(bool good, const char* what) const {
  KZERO_REQUIRE(good, ExitCode::files, "{}: {} ({})", partial_.string(), what,
                std::strerror(errno));
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = uninterrupted([&] { return ::write(id_, bytes.data(), bytes.size()); });
    require(written >= 0, "writing failed");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::sync() {
  require(uninterrupted([&] { return ::fsync(id_); }) == 0, "cannot be written to the disk");
}

void AtomicFile::finish() {
  sync();
  // The lock is held until the file has its name, so that nobody else opens it in between.
  storage::rename_durably(partial_, path_);
  finished_ = true;
}

}  // namespace kzero::storage
