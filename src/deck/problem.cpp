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
  constexpr std::size_t max_lines = 100;  // a file that is not a deck must not flood the log
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), max_lines); ++i) {
    const Problem& problem = problems[i];
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", problem.place.text, problem.text);
  }
  if (problems.size() > max_lines) {
    text += fmt::format("\n{}: and {} more", problems[max_lines].place.text,
                        problems.size() - max_lines);
  }
  throw Error(ExitCode::usage, text);
}

namespace {

bool is_first_byte(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

Locator::Locator(const std::string& name, std::string_view text)
    : name_(name), text_(text), lines_{text.starts_with("\xEF\xBB\xBF") ? std::size_t{3} : 0} {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') lines_.push_back(i + 1);
  }
}

std::size_t Locator::offset(std::size_t line, std::size_t column) const {
  line = std::clamp<std::size_t>(line, 1, lines_.size());
  std::size_t at = lines_[line - 1];
  const std::size_t end = line < lines_.size() ? lines_[line] - 1 : text_.size();
  for (std::size_t passed = 1; at < end && passed < column; ++passed) {
    do ++at;
    while (at < end && !is_first_byte(text_[at]));
  }
  return at;
}

SourceLocation Locator::place(std::size_t offset) const {
  const std::size_t start = line_start(offset);
  offset = std::max(offset, start);
  const auto line = std::ranges::upper_bound(lines_, start) - lines_.begin();
  const auto characters = std::ranges::count_if(text_.substr(start, offset - start), is_first_byte);
  return {SourceLocation::Source::deck, line, characters + 1,
          fmt::format("{}:{}:{}", name_, line, characters + 1)};
}

std::size_t Locator::line_start(std::size_t offset) const {
  const auto next = std::ranges::upper_bound(lines_, std::max(offset, lines_.front()));
  return *std::prev(next);
}

std::string_view Locator::line_at(std::size_t offset) const {
  const std::size_t start = line_start(offset);
  const std::string_view line = text_.substr(start, text_.find_first_of("\r\n", start) - start);
  return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
}

}  // namespace kzero::deck
