#include "data/file_list.hpp"

#include <glob.h>

#include <filesystem>
#include <unordered_set>

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

}  // namespace kzero::data
