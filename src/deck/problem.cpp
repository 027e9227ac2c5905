#include "deck/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.hpp"

namespace kzero::deck {

void throw_if_any(std::vector<Problem> problems) {
  if (problems.empty()) return;
  std::ranges::stable_sort(problems, {}, [](const Problem& p) {
    return std::tuple(p.place.source, p.place.line, p.place.column);
  });
  constexpr std::size_t most_lines = 100;  // a file that is not a deck must not flood the log
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), most_lines); ++i) {
    const Problem& problem = problems[i];
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", problem.place.text, problem.text);
  }
  if (problems.size() > most_lines) {
    text += fmt::format("\n{}: and {} more", problems[most_lines].place.text,
                        problems.size() - most_lines);
  }
  throw Error(ExitCode::usage, text);
}

}  // namespace kzero::deck
