#include "convert/config_export.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "convert/architecture.hpp"
#include "convert/family_config.hpp"
#include "convert/gpt2_config.hpp"
#include "convert/model_file.hpp"
#include "convert/rope_config.hpp"
#include "convert/weight_files.hpp"

namespace kzero::convert {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* mark = "_written_by";

void add_token_ids(const deck::Model& model, const Origin& origin, OrderedJson& json) {
  const Json default_id =
      model.family == deck::ModelFamily::gpt2 ? gpt2_end_of_text(model) : nullptr;
  const Json ids = token_ids(origin);
  json["bos_token_id"] = ids.value("bos_token_id", default_id);
  json["eos_token_id"] = ids.value("eos_token_id", default_id);
  json["pad_token_id"] = ids.value("pad_token_id", Json(nullptr));
}

OrderedJson marked(const std::string& name, const std::string& text) {
  OrderedJson json{{mark, "kzero"}};
  json.update(OrderedJson(json_object(name, text)));
  return json;
}

bool describes(const OrderedJson& config, const deck::Model& model) {
  try {
    return differences({config_name, config.dump()}, model).empty();
  } catch (const Error&) {
    return false;
  }
}

/// The config.json of the exported class. If its keys are in an object of the file, it has these,
/// and the token ids and marks of the file.
OrderedJson config_of(const std::string& text, const WrittenClass& type) {
  OrderedJson config = marked(config_name, text);
  if (type.text_key.empty()) return config;
  const OrderedJson keys = config.value(type.text_key, OrderedJson());
  KZERO_REQUIRE(keys.is_object(), ExitCode::files, "{}: is not an object", type.text_key);
  OrderedJson part{{mark, "kzero"}};
  part.update(keys);
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "transformers_version"})
    if (config.contains(key)) part[key] = config.at(key);
  return part;
}

/// The origin's config.json with the few values that a training may change. Nothing if it describes
/// another model.
std::optional<OrderedJson> renewed(const std::string& text, const deck::Model& model) {
  const ConfigText came{config_name, text};
  try {
    const WrittenClass type = written_class(came);
    OrderedJson config = config_of(text, type);
    const Index context = context_of(came, model);
    config["architectures"] = {type.name};
    config["model_type"] = type.type;
    config["vocab_size"] = model.vocab;
    if (type.details != nullptr) config["max_position_embeddings"] = context;
    if (describes(config, model)) return config;
    // Scaled rotary positions may have been relative to the former max_position_embeddings.
    if (type.details != nullptr) write_rope(model, *type.details, config);
    if (describes(config, model)) return config;
  } catch (const Error&) {
  }
  return std::nullopt;
}

}  // namespace

std::string_view long_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return "bfloat16";
    case Dtype::fp16:
      return "float16";
    default:
      return "float32";
  }
}

std::string config_text(const deck::Model& model, Dtype dtype, const Origin& origin,
                        const std::string& checkpoint) {
  const std::string* came = origin.find(config_name);
  std::optional<OrderedJson> config;
  if (came != nullptr) config = renewed(*came, model);
  if (!config) {
    config = OrderedJson{{mark, "kzero"}};
    config->update(is_rotary(model) ? family_config(model, checkpoint) : gpt2_config(model));
    add_token_ids(model, origin, *config);
  }
  for (const char* key : {"dtype", "torch_dtype"})  // of transformers 5 and 4
    (*config)[key] = long_name(dtype);
  return config->dump(2) + "\n";
}

Index context_of(const Origin& origin, const deck::Model& model) {
  const std::string* came = origin.find(config_name);
  if (came == nullptr || !is_rotary(model)) return model.sequence;
  const std::optional<OrderedJson> config = renewed(*came, model);
  return config ? config->at("max_position_embeddings").get<Index>() : model.sequence;
}

std::string generation_text(const deck::Model& model, const Origin& origin) {
  if (const std::string* came = origin.find(generation_name))
    return marked(generation_name, *came).dump(2) + '\n';
  if (origin.find(config_name) != nullptr) return "";
  OrderedJson config{{mark, "kzero"}, {"_from_model_config", true}};
  add_token_ids(model, origin, config);
  return config.dump(2) + "\n";
}

bool is_json_of_kzero(const std::filesystem::path& path) {
  try {
    return read_json_object(path, max_config_bytes).contains(mark);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace kzero::convert
