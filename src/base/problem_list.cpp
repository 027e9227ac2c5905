#include "base/problem_list.hpp"

#include <algorithm>

namespace kzero {

void ProblemList::add(const std::string& subject, const std::string& text) {
  if (std::ranges::find(problems_, subject, &Problem::subject) == problems_.end())
    problems_.push_back({subject, text});
}

std::string ProblemList::text() const {
  constexpr std::size_t most_lines = 100;  // a folder of thousands of bad files must not flood logs
  const std::size_t shown = std::min(problems_.size(), most_lines);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += (i > 0 ? "\n" : "") + problems_[i].text;
  if (shown < problems_.size()) text += fmt::format("\nand {} more", problems_.size() - shown);
  return text;
}

void ProblemList::throw_if_any(ExitCode code) const {
  if (!empty()) throw Error(code, text());
}

}  // namespace kzero
