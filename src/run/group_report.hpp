// Lines for people about the groups of the optimizer.
#pragma once

#include <string>
#include <vector>

#include "deck/config.hpp"
#include "param/spec.hpp"

namespace kzero::run {

/// One line for each table of [[optimizer.group]], and one for the parameters of none. Empty
/// without such tables. `table` is that of any tensor rank, with the groups of its parameters.
std::vector<std::string> group_lines(const deck::Optimizer& optimizer, const param::Table& table);

}  // namespace kzero::run
