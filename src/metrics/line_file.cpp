#include "metrics/line_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace kzero::metrics {

namespace {

namespace fs = std::filesystem;

void require_plain(const struct stat& file, const std::string& path) {
  // /dev/null means that no file is wanted, and /dev/full serves tests of a full disk. Both are
  // kernel devices that accept or refuse every byte at once.
  const bool is_sink = S_ISCHR(file.st_mode) && major(file.st_rdev) == 1 &&
                       (minor(file.st_rdev) == 3 || minor(file.st_rdev) == 7);
  const char* kind = S_ISDIR(file.st_mode)    ? "a folder"
                     : S_ISFIFO(file.st_mode) ? "a pipe"
                                              : "a device or socket";
  KZERO_REQUIRE(S_ISREG(file.st_mode) || is_sink, ExitCode::files,
                "run.metrics: {} is {}; name a file, or leave run.metrics empty for none", path,
                kind);
}

/// Also returns 0 if no file is open.
off_t size_of(int descriptor) {
  struct stat file {};
  return ::fstat(descriptor, &file) == 0 ? file.st_size : 0;
}

/// Checks only the first bytes, because a start record may be long.
bool begins_as_metrics(std::istream& file) {
  constexpr std::string_view begin = R"({"event":")";
  for (const char expected : begin) {
    char found = 0;
    if (!(file >> found)) return true;  // a crash may have truncated it here; blanks are skipped
    if (found != expected) return false;
  }
  return true;
}

/// The offset after the last line end; `size` if the file ends with one.
off_t last_line_of(int descriptor, off_t size) {
  std::array<char, 4096> block{};
  for (off_t end = size; end > 0;) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(block.size()));
    const auto wanted = static_cast<std::size_t>(end - begin);
    if (::pread(descriptor, block.data(), wanted, begin) != end - begin) return size;
    const std::size_t found = std::string_view(block.data(), wanted).rfind('\n');
    if (found != std::string_view::npos) return begin + static_cast<off_t>(found) + 1;
    end = begin;
  }
  return 0;
}

/// Maps "metrics.jsonl" to "metrics.N.jsonl", with N above that of every existing such file.
fs::path numbered_sibling(const fs::path& file, std::error_code& problem) {
  const std::string before = file.stem().string() + '.', after = file.extension().string();
  Index highest = 0;
  for (fs::directory_iterator entry(file.parent_path(), problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    const bool has_room = name.size() > before.size() + after.size();
    if (!has_room || !name.starts_with(before) || !name.ends_with(after)) continue;
    const char* last = name.data() + name.size() - after.size();
    Index number = 0;
    const auto [rest, bad] = std::from_chars(name.data() + before.size(), last, number);
    if (bad == std::errc{} && rest == last) highest = std::max(highest, number);
  }
  return file.parent_path() / fmt::format("{}{}{}", before, highest + 1, after);
}

}  // namespace

void require_metrics_file(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return;
  require_plain(file, path);  // before it is opened, which alone could block for ever
  std::ifstream text(path);
  KZERO_REQUIRE(file.st_size == 0 || !text || begins_as_metrics(text), ExitCode::files,
                "run.metrics: {} exists and does not hold metrics; name another file, or move it "
                "away",
                path);
}

LineFile::LineFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const auto folder = fs::path(path_).parent_path();
  std::error_code problem;
  if (!folder.empty()) fs::create_directories(folder, problem);
  KZERO_REQUIRE(!problem, ExitCode::files, "run.metrics: the folder {} cannot be made: {}",
                folder.string(), problem.message());
  require_metrics_file(path_);
  open();
}

LineFile::~LineFile() { close(); }

void LineFile::open() {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  KZERO_REQUIRE(descriptor_ >= 0, ExitCode::files,
                "run.metrics: {} cannot be opened for writing: {}", path_, std::strerror(errno));
}

void LineFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void LineFile::start_afresh() {
  if (size_of(descriptor_) == 0) return;
  std::error_code problem;
  const fs::path file = fs::canonical(path_, problem);  // the target of a link
  const fs::path target = problem ? file : numbered_sibling(file, problem);
  if (!problem) fs::rename(file, target, problem);
  KZERO_REQUIRE(!problem, ExitCode::files,
                "run.metrics: {} holds the metrics of an earlier run and cannot be renamed: {}; "
                "name another file",
                path_, problem.message());
  old_name_ = target.filename().string();
  close();
  open();
}

void LineFile::go_on() {
  const off_t size = size_of(descriptor_), begin = last_line_of(descriptor_, size);
  if (begin == size) return;
  // A line without its end may be complete: some editors save the last line without one.
  std::string line(static_cast<std::size_t>(size - begin), '\0');
  const bool was_read = ::pread(descriptor_, line.data(), line.size(), begin) == size - begin;
  if (was_read && nlohmann::json::accept(line)) {
    write_line("");
    return;
  }
  KZERO_REQUIRE(was_read && ::ftruncate(descriptor_, begin) == 0, ExitCode::files,
                "run.metrics: the last line of {}, which is truncated, cannot be removed: {}",
                path_, std::strerror(errno));
}

void LineFile::write_line(const std::string& text) {
  if (descriptor_ < 0) return;
  const std::string line = text + '\n';
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t written =
        uninterrupted([&] { return ::write(descriptor_, line.data() + done, line.size() - done); });
    KZERO_REQUIRE(written > 0, ExitCode::files, "run.metrics: writing to {} failed: {}", path_,
                  std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace kzero::metrics
