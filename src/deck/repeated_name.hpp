// Finds the first definition of a name that a deck defines twice; the TOML parser does not report
// it.
#pragma once

#include "deck/locator.hpp"

namespace kzero::deck {

/// Returns the problem for a name that the statement around `offset` defines a second time. The
/// text before that statement must be valid TOML.
Problem repeated_name(const Locator& locator, std::size_t offset);

}  // namespace kzero::deck
