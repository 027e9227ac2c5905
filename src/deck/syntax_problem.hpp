// Rewrites the TOML parser's errors in kzero's words, and locates them where a reader looks.
#pragma once

#include <optional>

#include "deck/locator.hpp"
#include "deck/toml.hpp"

namespace kzero::deck {

/// A number as it is written.
struct WrittenNumber {
  std::size_t offset;  // bytes from the start of the text
  std::size_t bytes;
};

/// Returns the number that does not fit 64 bits, if the parser refused the text because of one.
std::optional<WrittenNumber> number_out_of_range(const toml::parse_error& error,
                                                 const Locator& locator);

/// Converts the parser's error to a problem. `locator` has the text that was parsed.
Problem syntax_problem(const toml::parse_error& error, const Locator& locator);

}  // namespace kzero::deck
