// Rules of grid.sequence and train.sequence_chunks.
#pragma once

#include <vector>

#include "deck/rules.hpp"

namespace kzero::deck {

/// Checks how ranks share sequences and returns every broken rule. Resolves train.sequence_chunks,
/// and train.micro_batch if sequences have several chunks. The model's rules must have been
/// applied.
std::vector<Violation> apply_sequence_rules(Config& config);

}  // namespace kzero::deck
