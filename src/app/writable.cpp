#include "app/writable.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>

#include "base/error.hpp"
#include "runtime/host_name.hpp"

namespace kzero::app {

namespace {

namespace fs = std::filesystem;

/// Returns the path itself if something with its name exists, even a dangling link.
fs::path nearest_existing(const fs::path& path) {
  fs::path found = path;
  std::error_code ignored;
  while (!fs::exists(fs::symlink_status(found, ignored))) {
    if (!found.has_parent_path() || found == found.parent_path()) return ".";
    found = found.parent_path();
  }
  return found;
}

/// Returns 0, or the errno of the call that failed. All nodes may share the folder, so the name is
/// unique to this process. A file that somebody else put there is not written.
int try_to_write(const fs::path& folder) {
  const fs::path probe = folder / fmt::format(".kzero_probe_{}_{}_{:08x}", runtime::host_name(),
                                              ::getpid(), std::random_device()());
  const int descriptor = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  const std::array<char, 4096> block{};  // a single byte may fit where no block does
  const ssize_t written = ::write(descriptor, block.data(), block.size());
  int problem = written == static_cast<ssize_t>(block.size()) ? 0 : (written < 0 ? errno : ENOSPC);
  if (::close(descriptor) != 0 && problem == 0) problem = errno;  // where NFS reports quotas
  if (::unlink(probe.c_str()) != 0 && problem == 0) problem = errno;
  return problem;
}

/// Returns the file that opening a name would create: the target of the last in a chain of dangling
/// links.
fs::path behind_links(fs::path file) {
  constexpr int most = 40;  // the kernel's limit
  std::error_code problem;
  for (int i = 0; i < most && fs::is_symlink(fs::symlink_status(file, problem)); ++i)
    file = file.parent_path() / fs::read_symlink(file, problem);
  return file;
}

void require(int problem, const std::string& key, const fs::path& path, const fs::path& tried) {
  KZERO_REQUIRE(problem == 0, ExitCode::files,
                "{}: {} cannot be written ({}{}); name a place that this job may write to", key,
                path.string(), std::strerror(problem),
                tried == path ? "" : fmt::format(", tried in {}", tried.string()));
}

}  // namespace

void require_writable_folder(const std::string& key, const fs::path& folder) {
  const fs::path tried = nearest_existing(folder);
  std::error_code ignored;
  require(fs::is_directory(tried, ignored) ? try_to_write(tried) : ENOTDIR, key, folder, tried);
}

void require_writable_file(const std::string& key, const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    const fs::path target = behind_links(file);
    const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
    const bool is_made = target == file;  // with its folder; a link's target needs one
    const fs::path tried = is_made ? nearest_existing(folder) : folder;
    const int otherwise = fs::exists(tried, ignored) ? ENOTDIR : ENOENT;
    require(fs::is_directory(tried, ignored) ? try_to_write(tried) : otherwise, key, file, tried);
    return;
  }
  // Opened with O_NONBLOCK, since a FIFO would block.
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  require(descriptor < 0 ? errno : 0, key, file, file);
  ::close(descriptor);
}

std::optional<Index> free_bytes(const fs::path& path) {
  struct statvfs status {};
  if (::statvfs(nearest_existing(path).c_str(), &status) != 0 || status.f_blocks == 0)
    return std::nullopt;
  return static_cast<Index>(status.f_bavail) * static_cast<Index>(status.f_frsize);
}

}  // namespace kzero::app
