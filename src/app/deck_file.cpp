#include "app/deck_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "deck/schema.hpp"

namespace kzero::app {

namespace {

constexpr std::size_t max_bytes = std::size_t{256} << 10;

/// Suggests the file in the folder whose name is nearest to that of a missing deck.
std::string suggestion(const std::filesystem::path& file) {
  constexpr int max_entries = 1000;  // a folder may be huge
  std::vector<std::string> names;
  const auto folder = file.parent_path();
  std::error_code problem;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, problem);
  if (problem) return fmt::format("; there is no folder {}", folder.string());
  for (int i = 0; i < max_entries && entry != end(entry); ++i, entry.increment(problem)) {
    if (entry->path().extension() == ".toml") names.push_back(entry->path().filename().string());
  }
  const std::string name = file.filename().string();
  const std::string near = deck::nearest(name, names, 1 + name.size() / 3);
  return near.empty() ? "" : fmt::format("; did you mean {}?", (folder / near).string());
}

/// The file to read, and what it should be, for example a deck.
struct Wanted {
  const std::string& file;
  const std::string& kind;

  [[noreturn]] void refuse(const std::string& reason) const {
    fail(ExitCode::usage, "{}: the {} cannot be read: {}", file, kind, reason);
  }
};

/// Waits until a pipe has bytes or has no more writers.
void wait_for_writer(int descriptor, const Wanted& wanted, std::chrono::milliseconds patience) {
  pollfd writer{descriptor, POLLIN, 0};
  const int ready =
      uninterrupted([&] { return ::poll(&writer, 1, static_cast<int>(patience.count())); });
  if (ready == 0 && patience.count() == 0) wanted.refuse("it is a pipe that nobody writes to");
  if (ready == 0)
    wanted.refuse(fmt::format("nobody has written to this pipe for {} s",
                              std::chrono::duration<double>(patience).count()));
}

}  // namespace

deck::Source load(const std::string& file, const PipePatience& patience, const std::string& kind) {
  const Wanted wanted{file, kind};
  // Opened without blocking: a pipe without a writer must not hang.
  const Descriptor input(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (input.number() < 0) {
    const int problem = errno;
    wanted.refuse(std::strerror(problem) + (problem == ENOENT ? suggestion(file) : std::string()));
  }
  struct stat status {};
  if (::fstat(input.number(), &status) != 0) wanted.refuse(std::strerror(errno));
  if (S_ISDIR(status.st_mode))
    wanted.refuse(fmt::format("it is a directory; a {} is a TOML file", kind));
  const bool is_pipe = S_ISFIFO(status.st_mode);
  if (!is_pipe && !S_ISREG(status.st_mode)) wanted.refuse("it is neither a file nor a pipe");
  std::string text;
  std::array<char, 65536> part{};
  for (bool has_waited = false;;) {
    const ssize_t count =
        uninterrupted([&] { return ::read(input.number(), part.data(), part.size()); });
    if (count < 0 && errno != EAGAIN) wanted.refuse(std::strerror(errno));
    if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
    if (text.size() > max_bytes)
      wanted.refuse(
          fmt::format("it has more than {} bytes, the limit of a {}; name many files by a pattern",
                      max_bytes, kind));
    // A pipe without writers reads as ended, whether they have left or not come yet.
    const bool may_go_on = count < 0 || (is_pipe && text.empty() && !has_waited);
    if (count == 0 && !may_go_on) return {file, text};
    if (count <= 0) {
      wait_for_writer(input.number(), wanted, count < 0 ? patience.for_bytes : patience.for_writer);
      has_waited = true;
    }
  }
}

}  // namespace kzero::app
