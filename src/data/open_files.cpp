#include "data/open_files.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/checksum.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace kzero::data {

namespace {

constexpr std::size_t spare = 8;  // descriptors that are left for other uses

constexpr const char* in_place = "data files must stay in place while they are in use";

Index nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

OpenFiles::OpenFiles(std::size_t max_open) : max_open_(max_open) {
  constexpr std::size_t read_at_once = 16;  // files being read may exceed the limit by this number
  open_.reserve(max_open + read_at_once);
}

OpenFiles& OpenFiles::of_process() {
  static OpenFiles files;
  return files;
}

void OpenFiles::make_allowance(std::size_t count) const {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, limit.rlim_cur + std::min(count, max_open_));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// The largest number of descriptors of the process.
std::size_t OpenFiles::limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

/// Closes the files that have not been read for longest, until at most `left` are open or all open
/// ones are being read.
void OpenFiles::close_idle(std::size_t left) {
  while (open_.size() > left) {
    auto oldest = open_.end();
    for (auto file = open_.begin(); file != open_.end(); ++file) {
      const bool is_idle = (*file)->readers_ == 0;
      if (is_idle && (oldest == open_.end() || (*file)->last_read_ < (*oldest)->last_read_))
        oldest = file;
    }
    if (oldest == open_.end()) return;
    ::close((*oldest)->descriptor_);
    (*oldest)->descriptor_ = -1;
    *oldest = open_.back();
    open_.pop_back();
  }
}

/// Leaves descriptors to the rest of the program: half of all, and the highest numbers in any case.
/// The system gives out the lowest number that is free.
int OpenFiles::open(const char* path) {
  const std::size_t max_descriptors = limit();
  close_idle(std::clamp<std::size_t>(max_descriptors / 2, 1, max_open_) - 1);
  while (true) {
    // Without O_NONBLOCK, opening a FIFO would block.
    const int descriptor = ::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const bool is_missing = descriptor < 0 && (errno == EMFILE || errno == ENFILE);
    const bool is_last =
        descriptor >= 0 && static_cast<std::size_t>(descriptor) + spare >= max_descriptors;
    const std::size_t before = open_.size();
    if (is_missing || is_last) close_idle(before * 3 / 4);
    if (!is_missing || open_.size() == before) return descriptor;
  }
}

void OpenFiles::borrow(const DataFile& file) {
  const std::lock_guard lock(mutex_);
  if (file.descriptor_ < 0) file.open_again();
  ++file.readers_;
  file.last_read_ = ++clock_;
}

void OpenFiles::give_back(const DataFile& file) {
  const std::lock_guard lock(mutex_);
  --file.readers_;
}

void OpenFiles::forget(const DataFile& file) {
  const std::lock_guard lock(mutex_);
  if (file.descriptor_ < 0) return;
  ::close(file.descriptor_);
  std::erase(open_, &file);
}

DataFile::DataFile(std::string path, OpenFiles& all) : path_(std::move(path)), all_(all) {}

DataFile::~DataFile() { all_.forget(*this); }

bool DataFile::open(struct stat& status) {
  const std::lock_guard lock(all_.mutex_);
  descriptor_ = all_.open(path_.c_str());
  if (descriptor_ < 0) return false;
  all_.open_.push_back(this);
  last_read_ = ++all_.clock_;
  if (::fstat(descriptor_, &status) != 0) return false;
  number_ = status.st_ino;
  size_ = status.st_size;
  modified_ = nanoseconds(status.st_mtim);
  return true;
}

void DataFile::open_again() const {
  const int descriptor = all_.open(path_.c_str());
  KZERO_REQUIRE(descriptor >= 0, ExitCode::files, "{}: cannot be opened again: {}; {}", path_,
                std::strerror(errno), in_place);
  struct stat status {};
  const bool is_known = ::fstat(descriptor, &status) == 0;
  if (!is_known || !is_same(status)) {
    ::close(descriptor);
    fail(ExitCode::files, "{}: is not the file that was opened at the start; {}", path_, in_place);
  }
  descriptor_ = descriptor;
  all_.open_.push_back(this);
}

/// File systems without lasting inode numbers, such as some in user space, keep size and time.
bool DataFile::is_same(const struct stat& status) const {
  return status.st_ino == number_ ||
         (status.st_size == size_ && nanoseconds(status.st_mtim) == modified_);
}

template <class F>
auto DataFile::while_open(F&& use) const {
  all_.borrow(*this);
  struct Return {
    const DataFile& file;
    ~Return() { file.all_.give_back(file); }
  } const at_end{*this};
  return use();
}

Index DataFile::read(std::span<std::byte> bytes, Index offset) const {
  return while_open([&] {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const Index at = offset + static_cast<Index>(done);
      const ssize_t count = uninterrupted(
          [&] { return ::pread(descriptor_, bytes.data() + done, bytes.size() - done, at); });
      KZERO_REQUIRE(count >= 0, ExitCode::files, "{}: reading at byte {} failed: {}", path_, at,
                    std::strerror(errno));
      if (count == 0) break;
      done += static_cast<std::size_t>(count);
    }
    return static_cast<Index>(done);
  });
}

std::uint64_t DataFile::digest(std::uint64_t header_digest) const {
  const std::string name = std::filesystem::path(path_).filename();
  const std::array<std::uint64_t, 3> parts{checksum(std::as_bytes(std::span(name))),
                                           static_cast<std::uint64_t>(size_), header_digest};
  return checksum(std::as_bytes(std::span(parts)));
}

Index DataFile::size_now() const {
  return while_open([&] {
    struct stat status {};
    ::fstat(descriptor_, &status);
    return static_cast<Index>(status.st_size);
  });
}

}  // namespace kzero::data
