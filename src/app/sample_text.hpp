// Shows a packed sequence of a deck's training data: its documents, targets and tokens.
#pragma once

#include <string>

#include "base/types.hpp"
#include "data/dataset.hpp"
#include "deck/config.hpp"

namespace kzero::app {

/// Describes sample `sample` of the training, numbered from 0: each document with its tokens, of
/// which targets are in brackets, and the text if the data's folder has a tokenizer.json. Throws
/// Error(usage) for data without documents, and Error(files).
std::string sample_text(const deck::Config& config, const data::Dataset& dataset, Index sample);

}  // namespace kzero::app
