#include "deck/parameter_groups.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

namespace kzero::deck {

namespace {

bool group_matches(const OptimizerGroup& group, const std::string& parameter) {
  return ::fnmatch(group.match.c_str(), parameter.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace

Index group_of(const std::vector<OptimizerGroup>& groups, const std::string& parameter) {
  const auto found = std::ranges::find_if(
      groups, [&](const OptimizerGroup& group) { return group_matches(group, parameter); });
  return found == groups.end() ? -1 : found - groups.begin();
}

std::vector<std::string> empty_groups(const std::vector<OptimizerGroup>& groups,
                                      const std::vector<std::string>& parameters) {
  std::vector<std::string> reasons(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto match = [&](const std::string& name) { return group_matches(groups[g], name); };
    const auto own = [&](const std::string& name) {
      return group_of(groups, name) == static_cast<Index>(g);
    };
    if (std::ranges::any_of(parameters, own)) continue;
    const auto other = std::ranges::find_if(parameters, match);
    reasons[g] = other == parameters.end()
                     ? "matches no parameter of the model"
                     : fmt::format(
                           "matches only parameters of earlier groups, such as {} of "
                           "optimizer.group[{}]",
                           *other, group_of(groups, *other));
  }
  return reasons;
}

}  // namespace kzero::deck
