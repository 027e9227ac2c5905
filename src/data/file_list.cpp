#include "data/file_list.hpp"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <unordered_set>

#include "base/error.hpp"

namespace kzero::data {

namespace {

namespace fs = std::filesystem;

/// Converts a pattern for glob(), which would also interpret brackets and backslashes.
std::string escaped(const std::string& pattern) {
  std::string text;
  for (const char c : pattern) {
    if (c == '[' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

std::vector<std::string> matches_of(const std::string& pattern) {
  std::error_code ignored;
  const bool is_path = pattern.find_first_of("*?") == std::string::npos;
  if (is_path || fs::exists(pattern, ignored)) return {pattern};
  std::vector<std::string> files;
  glob_t matches{};
  const int status = ::glob(escaped(pattern).c_str(), 0, nullptr, &matches);
  for (std::size_t i = 0; status == 0 && i < matches.gl_pathc; ++i) {
    const std::string path = matches.gl_pathv[i];
    if (!fs::is_directory(path, ignored)) files.push_back(path);
  }
  ::globfree(&matches);
  return files;
}

}  // namespace

std::vector<std::string> expand_files(const std::vector<std::string>& patterns,
                                      ProblemList& problems) {
  std::vector<std::string> files;
  std::unordered_set<std::string> seen;
  for (const std::string& pattern : patterns) {
    const std::vector<std::string> matches = matches_of(pattern);
    if (matches.empty()) {
      problems.add(pattern, fmt::format("{}: matches no file (looked for in {}); give a path, or a "
                                        "pattern with * or ? that matches",
                                        pattern, fs::current_path().string()));
    }
    for (const std::string& path : matches) {
      if (seen.insert(fs::path(path).lexically_normal()).second) files.push_back(path);
    }
  }
  return files;
}

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

std::string vocabulary_advice(Index largest_token) {
  if (largest_token < 0 || largest_token >= std::numeric_limits<Token>::max())
    return fmt::format("no vocabulary has token {}: write the file again", largest_token);
  return fmt::format(
      "raise model.vocab to at least {} (the rows that model.initial lacks start as the mean of "
      "its rows) or use other data",
      largest_token + 1);
}

}  // namespace kzero::data
