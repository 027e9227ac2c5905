// The keys of [model] that define the function the weights compute. Checkpoints record them, and
// they are compared with every other description of the weights.
#pragma once

#include <string>
#include <vector>

#include "deck/schema.hpp"

namespace kzero::deck {

/// The defining keys of a family, in the order of the deck. model.family comes first.
std::vector<const Key*> defining_keys(ModelFamily family);

Value model_value(const Key& key, const Model& model);
void set_model_value(const Key& key, const Value& value, Model& model);

/// The model with a scale of 0 in place of the number that 0 means for a resolved model, as files
/// of others write it: the same function, in one form.
Model with_default_scales(Model model);

/// Returns whether two values of a key are equal in float32, in which all programs compute: files
/// write 1e-5 with more or fewer digits.
bool is_same_in_fp32(const Value& a, const Value& b);

/// Returns "model.heads is 4, was 8" for each defining key in which the models differ.
std::vector<std::string> architecture_changes(const Model& before, const Model& now);

}  // namespace kzero::deck
