#include "convert/architecture.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "convert/config_keys.hpp"
#include "convert/family_config.hpp"
#include "convert/gpt2_config.hpp"
#include "convert/model_file.hpp"
#include "convert/weight_files.hpp"
#include "deck/architecture.hpp"

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

/// A model_type with its classes: with the output projection, and without it.
struct KnownType {
  const char* type;
  const char* with_head;
  const char* alone;
  const ModelClass* written;       // the class of its exports; null: GPT-2's
  const char* text_key = nullptr;  // of the object that describes the part for text
};

const std::vector<KnownType>& known_types() {
  static const std::vector<KnownType> all = [] {
    std::vector<KnownType> types{{"gpt2", "GPT2LMHeadModel", "GPT2Model", nullptr}};
    for (const ModelClass& one : model_classes()) {
      types.push_back({one.type, one.with_head, one.alone, &one});
      // An image's tokens are not read, and the part for text is a model by itself.
      if (one.type == std::string_view("gemma3_text"))
        types.push_back(
            {"gemma3", "Gemma3ForConditionalGeneration", "Gemma3Model", &one, "text_config"});
    }
    return types;
  }();
  return all;
}

std::string all_types() {
  std::vector<std::string> names;
  for (const KnownType& known : known_types()) names.emplace_back(known.type);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string all_classes() {
  std::vector<std::string> names;
  for (const KnownType& known : known_types()) {
    names.emplace_back(known.with_head);
    names.emplace_back(known.alone);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Finds the type by `model_type`, `architectures`, or both; they must agree.
const KnownType& type_of(const std::string& name, const Json& config) {
  const auto type = config.find("model_type");
  const auto list = config.find("architectures");
  const bool has_list = list != config.end() && !list->is_null();
  KZERO_REQUIRE(type != config.end() || has_list, ExitCode::files,
                "{}: names neither \"model_type\" nor \"architectures\"; kzero reads {}", name,
                all_types());
  const auto is_type = [&](const KnownType& known) { return *type == known.type; };
  const auto is_class = [&](const KnownType& known) {
    return list->is_array() && list->size() == 1 &&
           (list->front() == known.with_head || list->front() == known.alone);
  };
  const std::vector<KnownType>& all = known_types();
  const auto by_type = type == config.end() ? all.end() : std::ranges::find_if(all, is_type);
  const auto by_class = has_list ? std::ranges::find_if(all, is_class) : by_type;
  KZERO_REQUIRE(type == config.end() || by_type != all.end(), ExitCode::files,
                "{}: model_type is {}; kzero reads {}", name, json_shown(*type), all_types());
  KZERO_REQUIRE(by_class != all.end(), ExitCode::files,
                "{}: architectures is {}; kzero reads one of {}", name, json_shown(*list),
                all_classes());
  KZERO_REQUIRE(type == config.end() || by_type == by_class, ExitCode::files,
                "{}: architectures is {}, which contradicts model_type, {}", name,
                json_shown(*list), json_shown(*type));
  return *by_class;
}

/// Reads the keys of the object that describes the part for text. The output projection is that of
/// the entire model, which ties it to the embedding.
void read_text_part(ConfigKeys& keys, const KnownType& known) {
  if (!keys.at(known.text_key).is_object())
    return keys.refuse(known.text_key, "kzero needs this object");
  keys.require("tie_word_embeddings", true, {true}, "kzero reads this class with tied embeddings");
  ConfigKeys text = keys.within(known.text_key);
  text.require("model_type", known.written->type, {known.written->type},
               fmt::format("kzero reads {}", known.written->type));
  read_family(text, *known.written);
}

/// Whether a scale of the file is what the model's 0 means, or the other way round.
bool means_the_same(const deck::Key& key, const deck::Value& in_file, const deck::Model& model) {
  deck::Model described = model;
  deck::set_model_value(key, in_file, described);
  return deck::model_value(key, deck::with_default_scales(described)) ==
         deck::model_value(key, deck::with_default_scales(model));
}

}  // namespace

ConfigText load_config(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto file =
      std::filesystem::is_directory(path, ignored) ? model_file(path, config_name) : path;
  return {file, load_file(file, max_config_bytes)};
}

std::vector<deck::ImpliedValue> architecture(const ConfigText& config) {
  ConfigReading reading{.file = printable(config.file.string())};
  const Json json = json_object(config.file, config.text);
  const KnownType& known = type_of(reading.file, json);
  ConfigKeys keys(reading, json);
  const auto list = json.find("architectures");
  const bool has_list = list != json.end() && !list->is_null();
  const auto family = known.written == nullptr ? deck::ModelFamily::gpt2 : known.written->family;
  keys.imply("model.family", std::string(name_of(family)),
             keys.describe(has_list ? "architectures" : "model_type"));
  if (known.written == nullptr) {
    read_gpt2(keys);
  } else if (known.text_key != nullptr) {
    read_text_part(keys, known);
  } else {
    read_family(keys, *known.written);
  }
  keys.require("quantization_config", nullptr, {nullptr},
               "kzero reads only floating-point weights");
  KZERO_REQUIRE(reading.problems.empty(), ExitCode::files,
                "{}: describes a model that kzero does not compute:\n  {}", reading.file,
                fmt::join(reading.problems, "\n  "));
  return reading.implied;
}

std::vector<deck::ImpliedValue> read_architecture(const std::string& path) {
  return architecture(load_config(path));
}

std::vector<std::string> differences(const ConfigText& config, const deck::Model& model) {
  const std::string name = printable(config.file.string());
  std::vector<std::string> found;
  for (const deck::ImpliedValue& implied : architecture(config)) {
    const deck::Key& key = *deck::find_key(implied.path);
    const deck::Value value = deck::model_value(key, model);
    if (deck::allows(implied, value) || means_the_same(key, implied.value, model)) continue;
    found.push_back(fmt::format("{}, {} is {}", implied.origin.substr(name.size() + 2), key.path,
                                as_toml(key, value)));
    if (key.path == "model.family") break;  // the other keys have another meaning
  }
  return found;
}

void require_same_function(const std::filesystem::path& path, const deck::Model& model) {
  const ConfigText config = load_config(path);
  const std::string name = printable(config.file.string());
  const std::vector<std::string> found = differences(config, model);
  KZERO_REQUIRE(found.empty(), ExitCode::files,
                "{}: describes another model than the deck:\n  {}\n(change the deck, where "
                "model.config = \"{}\" sets all of these; if this config.json belongs to other "
                "weights, move these into a folder of their own)",
                name, fmt::join(found, "\n  "), name);
}

Index context_of(const ConfigText& config, const deck::Model& model) {
  if (!is_rotary(model)) return model.sequence;
  for (const deck::ImpliedValue& implied : architecture(config)) {
    if (implied.path == "model.sequence")
      return std::max(model.sequence, std::get<Index>(implied.value));
  }
  return model.sequence;
}

bool is_rotary(const deck::Model& model) {
  return deck::has_use(*deck::find_key("model.rope_theta"), name_of(model.family));
}

WrittenClass written_class(const ConfigText& config) {
  const std::string name = printable(config.file.string());
  const Json json = json_object(config.file, config.text);
  const KnownType& known = type_of(name, json);
  if (known.written == nullptr) return {known.type, known.with_head};
  return {known.written->type, known.written->with_head, known.written,
          known.text_key == nullptr ? "" : known.text_key};
}

}  // namespace kzero::convert
