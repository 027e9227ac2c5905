// Reads config.json, Hugging Face's description of the function that weights compute.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "convert/model_classes.hpp"
#include "deck/config.hpp"
#include "deck/reader.hpp"

namespace kzero::convert {

/// The text of a config.json.
struct ConfigText {
  std::filesystem::path file;
  std::string text;
};

/// Reads a config.json, or the one in a folder. Throws Error(files) if it cannot be read, or is
/// larger than any file of this kind. Not collective.
ConfigText load_config(const std::filesystem::path& path);

/// The values that a config.json gives to the keys of the deck: architecture, sizes and everything
/// else that defines the function of the weights. A missing key has the meaning that its class in
/// transformers gives it. Throws Error(files) that lists everything that kzero does not compute,
/// each with key and value.
std::vector<deck::ImpliedValue> architecture(const ConfigText& config);

/// Reads a config.json, or the one in a folder, and the values that it gives. This function is a
/// deck::Architecture. Not collective.
std::vector<deck::ImpliedValue> read_architecture(const std::string& path);

/// How the function that config.json describes differs from the one that kzero computes from the
/// weights with `model`: one text for each key, "n_head is 4, model.heads is 3". Throws
/// Error(files) for a function that kzero does not compute.
std::vector<std::string> differences(const ConfigText& config, const deck::Model& model);

/// Throws Error(files) unless config.json describes the function that kzero computes from the
/// weights with `model`. The error lists all differences, with the deck's keys.
void require_same_function(const std::filesystem::path& config, const deck::Model& model);

/// The tokens that the model of a config.json can read at once, after a training with
/// model.sequence. Rotary positions exist for any length, so the larger of the two counts. Learned
/// positions end at model.sequence.
Index context_of(const ConfigText& config, const deck::Model& model);

/// Returns whether the model has rotary positions.
bool is_rotary(const deck::Model& model);

/// The class of an export of the model that a config.json describes.
struct WrittenClass {
  std::string type, name;               // model_type, and the class with an output projection
  const ModelClass* details = nullptr;  // null: GPT-2's
  std::string text_key{};               // the object of its keys; empty: they are those of the file
};
WrittenClass written_class(const ConfigText& config);

}  // namespace kzero::convert
