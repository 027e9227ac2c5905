#include "metrics/terminal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/descriptor.hpp"

namespace kzero::metrics {

namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The parent of a process; 0 for the first process, or if /proc does not tell.
int parent_of(int process) {
  // The name, in parentheses, may contain blanks and parentheses; state and parent follow it.
  const std::string stat = text_of(fmt::format("/proc/{}/stat", process));
  const std::size_t end = stat.rfind(") ");
  return end == std::string::npos || end + 4 > stat.size() ? 0 : std::atoi(stat.c_str() + end + 4);
}

bool is_launcher(int process) {
  const std::string name = text_of(fmt::format("/proc/{}/comm", process));
  const auto begins = [&](std::string_view start) { return name.starts_with(start); };
  return begins("mpiexec") || begins("mpirun") || begins("hydra_");
}

/// Returns whether the launcher prefixes lines with rank numbers, or redirects lines to files.
bool changes_output(int launcher) {
  constexpr std::array<std::string_view, 5> options = {"l", "prepend-rank", "prepend-pattern",
                                                       "outfile-pattern", "outfile"};
  const std::string words = text_of(fmt::format("/proc/{}/cmdline", launcher));
  for (std::size_t begin = 0; begin < words.size();) {
    std::string_view word = words.c_str() + begin;
    begin += word.size() + 1;
    if (!word.starts_with('-')) continue;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    if (std::find(options.begin(), options.end(), word) != options.end()) return true;
  }
  return false;
}

/// Returns whether the process can read from the pipe, given as /proc shows it: "pipe:[1234]".
bool reads_from(int process, const fs::path& pipe) {
  std::error_code problem;
  for (fs::directory_iterator entry(fmt::format("/proc/{}/fd", process), problem), end;
       !problem && entry != end; entry.increment(problem)) {
    struct stat link {};  // the permissions of the link are those with which the file is open
    std::error_code closed;
    if (fs::read_symlink(entry->path(), closed) == pipe &&
        ::lstat(entry->path().c_str(), &link) == 0 && (link.st_mode & S_IRUSR) != 0)
      return true;
  }
  return false;
}

/// The nearest ancestor process that reads from the pipe; 0: none.
int reader_above(int process, const fs::path& pipe) {
  do {
    process = parent_of(process);
  } while (process > 0 && !reads_from(process, pipe));
  return process;
}

/// Opens without blocking and without adopting the terminal: a rank is often the leader of a
/// session.
int opened(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

}  // namespace

std::optional<Terminal> Terminal::behind(int descriptor) {
  const char* kind = std::getenv("TERM");
  if (kind != nullptr && std::string_view(kind) == "dumb") return std::nullopt;
  if (::isatty(descriptor) == 1) return Terminal(descriptor, {});
  std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  int process = ::getpid();
  while (true) {
    std::error_code problem;
    const fs::path target = fs::read_symlink(path, problem);
    if (target.string().starts_with("/dev/") && ::isatty(Descriptor(opened(path)).number()) == 1)
      return Terminal(-1, path);
    if (!target.string().starts_with("pipe:")) return std::nullopt;
    process = reader_above(process, target);
    if (process <= 0 || !is_launcher(process) || changes_output(process)) return std::nullopt;
    path = fmt::format("/proc/{}/fd/{}", process, STDOUT_FILENO);
  }
}

Index Terminal::columns() const {
  const auto ask = [](int descriptor) -> Index {
    winsize size{};
    return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  };
  return descriptor_ >= 0 ? ask(descriptor_) : ask(Descriptor(opened(path_)).number());
}

}  // namespace kzero::metrics
