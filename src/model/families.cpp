#include "model/gpt_definition.hpp"

namespace kzero::model {

namespace {

/// The only family so far; a second one makes this a choice by the deck.
Family family_of(const deck::Config& /*config*/) { return define_gpt; }

}  // namespace

std::shared_ptr<const Definition> define(const deck::Config& config) {
  return family_of(config)(config);
}

}  // namespace kzero::model
