#include "base/problem_list.hpp"

#include <algorithm>
#include <map>

namespace kzero {

namespace {

constexpr std::size_t max_alike = 8;  // problems of one kind that get a line each
constexpr std::size_t max_named = 3;  // subjects named on a combined line

/// The text without the subject and without digits.
std::string kind_of(const ProblemList::Problem& problem) {
  std::string kind = problem.text;
  const std::size_t subject = kind.find(problem.subject);
  if (subject != std::string::npos) kind.erase(subject, problem.subject.size());
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

/// The end of a line that combines several problems; the line begins with the first of them.
std::string others(const std::vector<const ProblemList::Problem*>& alike) {
  std::string text = fmt::format(" (and {} more like this: ", alike.size() - 1);
  for (std::size_t i = 1; i <= max_named; ++i) text += alike[i]->subject + ", ";
  return text + "...)";
}

}  // namespace

void ProblemList::add(const std::string& subject, const std::string& text) {
  if (std::ranges::find(problems_, subject, &Problem::subject) == problems_.end())
    problems_.push_back({subject, text});
}

std::string ProblemList::text() const {
  std::map<std::string, std::vector<const Problem*>> kinds;
  for (const Problem& problem : problems_) kinds[kind_of(problem)].push_back(&problem);
  std::vector<std::string> lines;
  for (const Problem& problem : problems_) {
    const auto& alike = kinds[kind_of(problem)];
    if (alike.size() <= max_alike) {
      lines.push_back(problem.text);
    } else if (alike.front() == &problem) {
      lines.push_back(problem.text + others(alike));
    }
  }
  constexpr std::size_t max_shown = 100;
  const std::size_t shown = std::min(lines.size(), max_shown);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += (i > 0 ? "\n" : "") + lines[i];
  if (shown < lines.size()) text += fmt::format("\nand {} more", lines.size() - shown);
  return text;
}

void ProblemList::throw_if_any(ExitCode code) const {
  if (!empty()) throw Error(code, text());
}

}  // namespace kzero
