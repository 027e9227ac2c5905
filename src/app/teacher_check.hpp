// Checks that a teacher's probabilities are of the data and of the tokenizer of a run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.hpp"
#include "deck/config.hpp"

namespace kzero::app {

/// Throws Error(files) if a teacher had another tokenizer than the student's, in the folder of
/// model.initial or of the data, as far as both are known.
void require_tokenizers(const deck::Config& config, const data::Dataset& dataset);

/// Returns this part's summand of a hash of each source's tokens, which it reads.
std::vector<std::uint64_t> contents(const data::Dataset& dataset, Index part, Index parts);

/// Throws Error(files) if a teacher read other tokens than those with these hashes.
void require_contents(const data::Dataset& dataset, std::span<const std::uint64_t> hashes);

}  // namespace kzero::app
