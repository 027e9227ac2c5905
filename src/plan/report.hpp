// Formats plans for people and for programs: a single plan in full, a longer list with one line
// each.
#pragma once

#include <string>
#include <vector>

#include "plan/proposals.hpp"

namespace kzero::plan {

std::string table(const std::vector<Entry>& entries);
std::string table(const std::vector<Fit>& fits);

/// Formats the fastest proposals, one line each.
std::string table(const std::vector<Proposal>& proposals);

/// Formats the model states of nominal sizes in GB of 1e9 bytes, as in the paper.
std::string table(const std::vector<Footprint>& footprints);

/// Formats a JSON array with one object per plan. docs/planning.md lists the fields.
std::string json(const std::vector<Entry>& entries);
std::string json(const std::vector<Fit>& fits);
std::string json(const std::vector<Proposal>& proposals);
std::string json(const std::vector<Footprint>& footprints);

}  // namespace kzero::plan
