// Reads launchers' environment variables.
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace kzero::runtime {

/// The integer at the start of a variable's value; empty if the variable is not set or does not
/// begin with an integer.
inline std::optional<int> environment_number(const char* variable) {
  const char* value = std::getenv(variable);
  const std::string_view text = value == nullptr ? "" : value;
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace kzero::runtime
