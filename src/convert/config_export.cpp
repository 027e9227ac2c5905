#include "convert/config_export.hpp"

#include "base/error.hpp"
#include "convert/gpt2_config.hpp"
#include "convert/json_file.hpp"
#include "convert/llama_config.hpp"

namespace kzero::convert {

namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* mark = "_written_by";

void add_token_ids(const deck::Model& model, const Origin& origin, OrderedJson& json) {
  const OrderedJson usual =
      model.family == deck::ModelFamily::gpt2 ? gpt2_end_of_text(model) : nullptr;
  json["bos_token_id"] = origin.token_ids.value("bos_token_id", usual);
  json["eos_token_id"] = origin.token_ids.value("eos_token_id", usual);
  json["pad_token_id"] = origin.token_ids.value("pad_token_id", OrderedJson(nullptr));
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
  OrderedJson config{{mark, "kzero"}};
  config.update(model.family == deck::ModelFamily::llama ? llama_config(model, checkpoint)
                                                         : gpt2_config(model));
  add_token_ids(model, origin, config);
  config["torch_dtype"] = config["dtype"] = long_name(dtype);  // names in transformers 4 and 5
  return config.dump(2) + "\n";
}

std::string generation_text(const deck::Model& model, const Origin& origin) {
  OrderedJson config{{mark, "kzero"}, {"_from_model_config", true}};
  add_token_ids(model, origin, config);
  return config.dump(2) + "\n";
}

bool is_json_of_kzero(const std::filesystem::path& path) {
  constexpr Index most_bytes = Index{1} << 20;
  try {
    return read_json_object(path, most_bytes).contains(mark);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace kzero::convert
