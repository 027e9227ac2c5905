#include "model/gpt_definition.hpp"

namespace kzero::model {

/// GPT is the only family so far; a second one makes this a choice by the deck.
std::shared_ptr<const Definition> define(const deck::Config& config) { return define_gpt(config); }

}  // namespace kzero::model
