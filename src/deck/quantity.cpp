#include "deck/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "deck/config.hpp"

namespace kzero::deck {

namespace {

struct Unit {
  std::string_view name;
  Index factor;
};

constexpr std::array<Unit, 5> binary_units{{{"TiB", Index{1} << 40},
                                            {"GiB", Index{1} << 30},
                                            {"MiB", Index{1} << 20},
                                            {"KiB", Index{1} << 10},
                                            {"B", 1}}};
constexpr std::array<Unit, 5> decimal_units{{{"TB", 1'000'000'000'000},
                                             {"GB", 1'000'000'000},
                                             {"MB", 1'000'000},
                                             {"kB", 1'000},
                                             {"KB", 1'000}}};
constexpr std::array<Unit, 4> time_units{{{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}}};

bool starts_with_digit(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

/// Parses a number at the front of the text and removes it.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value{};
  if (!starts_with_digit(text)) return std::nullopt;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  skip_blanks(text);
  return value;
}

template <std::size_t N>
const Unit* find_unit(const std::array<Unit, N>& units, std::string_view name) {
  const auto* const found = std::ranges::find(units, name, &Unit::name);
  return found == units.end() ? nullptr : found;
}

}  // namespace

std::optional<Index> whole_number(double value) {
  constexpr double exact_below = 0x1p53;
  if (!(std::abs(value) <= exact_below) || value != std::floor(value)) return std::nullopt;
  return static_cast<Index>(value);
}

std::optional<Index> parse_count(std::string_view text) {
  const auto number = take_number<double>(text);
  return number && text.empty() ? whole_number(*number) : std::nullopt;
}

std::optional<Index> parse_size(std::string_view text) {
  const auto count = take_number<Index>(text);
  if (!count || text.empty()) return count;
  const Unit* unit = find_unit(binary_units, text);
  if (unit == nullptr) unit = find_unit(decimal_units, text);
  if (unit == nullptr || *count > std::numeric_limits<Index>::max() / unit->factor)
    return std::nullopt;
  return *count * unit->factor;
}

std::string format_size(Index bytes) {
  for (const Unit& unit : binary_units) {
    if (bytes != 0 && bytes % unit.factor == 0) {
      return fmt::format("{}{}", bytes / unit.factor, unit.name);
    }
  }
  return fmt::format("{}B", bytes);
}

std::optional<double> parse_duration(std::string_view text) {
  auto number = take_number<double>(text);
  if (!number || text.empty()) return number;
  double seconds = 0;
  auto unit = time_units.begin();
  while (number) {
    while (unit != time_units.end() && !text.starts_with(unit->name)) ++unit;
    if (unit == time_units.end()) return std::nullopt;
    seconds += *number * static_cast<double>(unit->factor);
    text.remove_prefix(unit->name.size());
    ++unit;
    if (text.empty()) return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
    skip_blanks(text);
    number = take_number<double>(text);
  }
  return std::nullopt;
}

std::string format_duration(double seconds) {
  if (seconds == 0 || seconds != std::floor(seconds) || seconds > 1e15) {
    return fmt::format("{}s", seconds);
  }
  std::string text;
  auto left = static_cast<Index>(seconds);
  for (const Unit& unit : time_units) {
    if (unit.name == "d" || left < unit.factor) continue;  // batch systems count hours, not days
    text += fmt::format("{}{}", left / unit.factor, unit.name);
    left %= unit.factor;
  }
  return text;
}

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
