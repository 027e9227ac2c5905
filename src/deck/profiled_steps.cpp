#include <charconv>

#include "deck/config.hpp"

namespace kzero::deck {

namespace {

/// Reads a number at the start of `text` and removes it; empty if there is none.
std::optional<Index> take_number(std::string_view& text) {
  Index number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::optional<StepRange> profiled_steps(const Run& run) {
  std::string_view text = run.profile_steps;
  const auto first = take_number(text);
  if (!first || !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  const auto last = take_number(text);
  if (!last || !text.empty() || *last < *first) return std::nullopt;
  return StepRange{*first, *last};
}

}  // namespace kzero::deck
