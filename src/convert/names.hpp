// The names of a family's tensors in Hugging Face's files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deck/config.hpp"

namespace kzero::convert {

inline constexpr const char* head_name = "lm_head.weight";

/// A number that files of a family have as a tensor without dimensions in each block, although it
/// is not trained.
struct StoredConstant {
  std::string_view name;  // within a block
  float value;
};

struct TensorNames {
  std::string_view prefix;  // not for the output projection; files may omit it
  std::span<const std::string_view> other_prefixes;  // of classes that have the model as a part
  std::string_view embedding;                        // of tokens, without the prefix
  std::string_view blocks;                           // the prefix of blocks, without the prefix
  std::string_view constant_endings[2];  // of constants that some programs store with the weights
  std::span<const StoredConstant> constants;      // with a value that kzero computes with
  std::span<const std::string_view> other_parts;  // prefixes of what is not for text
  std::string_view unchecked;  // facts about the weights that only config.json tells

  /// The name without the prefix.
  std::string plain(const std::string& name) const;
  bool is_constant(std::string_view name) const;
  /// Returns whether a tensor of this plain name belongs to another part of a larger model.
  bool is_other_part(std::string_view name) const;
  /// The constant of this plain name; null if it is none.
  const StoredConstant* constant(std::string_view name) const;
};

/// The names of all constants of a model, with the prefix, and their values.
std::vector<std::pair<std::string, float>> stored_constants(const deck::Model& model);

/// Returns whether a file that stores `constant` may have this value: 16 bits round it.
bool is_stored_as(float constant, float value);

/// Throws Error(files) for a family that has none. Converters ask before they write anything.
const TensorNames& names_of(deck::ModelFamily family);

}  // namespace kzero::convert
