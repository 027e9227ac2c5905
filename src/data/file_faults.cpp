#include "data/file_faults.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.hpp"

namespace kzero::data {

namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "folder";
  return S_ISFIFO(mode) ? "FIFO" : "device";
}

}  // namespace

std::string reason_of(int problem, const std::string& path) {
  std::string text = std::strerror(problem);
  if (problem == ENOENT && std::filesystem::path(path).is_relative())
    text += fmt::format(" (looked for in {})", std::filesystem::current_path().string());
  if (problem == EMFILE) text += "; raise the limit (ulimit -n), or join files";
  return text;
}

void require_regular(const std::string& path, mode_t mode) {
  KZERO_REQUIRE(S_ISREG(mode), ExitCode::files,
                "{}: is a {}, but data must be in regular files, which are read at any offset and "
                "more than once",
                path, kind_of(mode));
}

std::string vocabulary_advice(Index most) {
  if (most < 0 || most >= std::numeric_limits<Token>::max())
    return fmt::format("no vocabulary has token {}: write the file again", most);
  return fmt::format(
      "raise model.vocab to at least {} (the rows that model.initial lacks start as the mean of "
      "its rows) or use other data",
      most + 1);
}

}  // namespace kzero::data
