// What the TOML parser refuses, in kzero's words and at the place where a reader looks for it.
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

/// Returns the number that the parser refused because it does not fit 64 bits, if that was it.
std::optional<WrittenNumber> number_out_of_range(const toml::parse_error& error,
                                                 const Locator& locator);

/// Returns the problem that `error` is. `locator` has the text that was parsed.
Problem syntax_problem(const toml::parse_error& error, const Locator& locator);

}  // namespace kzero::deck
