#include "run/evaluation_mark.hpp"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "storage/files.hpp"

namespace kzero::run {

namespace fs = std::filesystem;

EvaluationMark::EvaluationMark(const std::string& folder)
    : path_(folder.empty() ? fs::path() : fs::path(folder) / evaluation_mark_name) {}

void EvaluationMark::write(const BegunEvaluations& begun) const {
  if (path_.empty()) return;
  std::string text = fmt::format("{}\n", begun.step);
  for (const std::string& name : begun.complete) text += name + '\n';
  storage::write_durably(path_, text);
}

void EvaluationMark::remove() const {
  if (path_.empty()) return;
  std::error_code error;
  fs::remove(path_, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be removed ({})", path_.string(),
                error.message());
}

std::optional<BegunEvaluations> EvaluationMark::read() const {
  std::error_code ignored;
  if (path_.empty() || !fs::is_regular_file(path_, ignored)) return std::nullopt;
  constexpr Index most_bytes = Index{1} << 20;
  std::istringstream text(load_file(path_, most_bytes));
  std::string line;
  std::getline(text, line);
  BegunEvaluations begun;
  const char* end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data(), end, begun.step);
  if (error != std::errc{} || rest != end || begun.step < 0) return std::nullopt;
  while (std::getline(text, line)) begun.complete.push_back(line);
  return begun;
}

}  // namespace kzero::run
