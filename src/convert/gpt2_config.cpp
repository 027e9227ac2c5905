#include "convert/gpt2_config.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/json_file.hpp"

namespace kzero::convert {

namespace {

using Json = nlohmann::json;

constexpr Index most_bytes = Index{1} << 20;
constexpr const char* mark = "_written_by";
constexpr Index gpt2_vocab = 50257;
constexpr Index gpt2_end_of_text = 50256;  // its last token, which also begins a text

/// Three names of the one function of kernels/gelu.hpp.
constexpr std::array<const char*, 3> known_activations{"gelu_new", "gelu_pytorch_tanh",
                                                       "gelu_fast"};
/// The transformer alone, and with the output projection.
constexpr std::array<const char*, 2> known_architectures{"GPT2LMHeadModel", "GPT2Model"};

bool is_among(const Json& value, const auto& names) {
  return value.is_string() && std::ranges::find(names, value.get<std::string>()) != names.end();
}

/// A value of the file, safe to print and not too long.
std::string shown(const Json& value) {
  constexpr std::size_t longest = 60;
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return printable(text);
}

/// Collects the differences between a config.json and the deck.
class Comparison {
 public:
  explicit Comparison(const Json& config) : config_(config) {}

  /// Compares a number under a key or its alternative name; if both are missing, Hugging Face's
  /// default.
  void number(const std::vector<const char*>& keys, const Json& usual, const char* deck_key,
              double wanted) {
    std::size_t found = 0;
    for (const char* key : keys) {
      const auto value = config_.find(key);
      if (value == config_.end()) continue;
      ++found;
      compare(fmt::format("{} is {}", key, shown(*value)), *value, deck_key, wanted);
    }
    if (found == 0) {
      compare(fmt::format("{} is missing, which means {}", keys[0], usual.dump()), usual, deck_key,
              wanted);
    }
  }

  /// Checks a switch of which kzero supports one position only.
  void fixed(const char* key, bool usual, bool wanted, const char* meaning) {
    const Json value = config_.value(key, Json(usual));
    if (value.is_boolean() && value.get<bool>() == wanted) return;
    problems_.push_back(fmt::format("{} is {}; kzero {}", key, shown(value), meaning));
  }

  void boolean(const char* key, bool usual, const char* deck_key, bool wanted) {
    const Json value = config_.value(key, Json(usual));
    if (value.is_boolean() && value.get<bool>() == wanted) return;
    problems_.push_back(fmt::format("{} is {}, {} is {}", key, shown(value), deck_key, wanted));
  }

  void activation(const char* key) {
    const Json value = config_.value(key, Json(known_activations[0]));
    if (is_among(value, known_activations)) return;
    problems_.push_back(fmt::format("{} is {}; kzero computes {}", key, shown(value),
                                    fmt::join(known_activations, ", ")));
  }

  const std::vector<std::string>& problems() const { return problems_; }

 private:
  /// Compares as float32, the type in which both programs compute.
  void compare(const std::string& what, const Json& value, const char* deck_key, double wanted) {
    const bool same =
        value.is_number() && static_cast<float>(value.get<double>()) == static_cast<float>(wanted);
    if (!same) problems_.push_back(fmt::format("{}, {} is {}", what, deck_key, wanted));
  }

  const Json& config_;
  std::vector<std::string> problems_;
};

/// Refuses another architecture, for which no other key would mean anything.
void require_gpt2(const std::string& name, const Json& config) {
  const auto type = config.find("model_type");
  const auto list = config.find("architectures");
  const bool has_list = list != config.end() && !list->is_null();
  KZERO_REQUIRE(type != config.end() || has_list, ExitCode::files,
                "{}: names neither \"model_type\" nor \"architectures\"; kzero reads gpt2", name);
  KZERO_REQUIRE(type == config.end() || *type == "gpt2", ExitCode::files,
                "{}: model_type is {}; kzero reads \"gpt2\"", name, shown(*type));
  KZERO_REQUIRE(!has_list || (list->is_array() && list->size() == 1 &&
                              is_among(list->front(), known_architectures)),
                ExitCode::files, "{}: architectures is {}; kzero reads {}", name, shown(*list),
                fmt::join(known_architectures, ", "));
}

}  // namespace

void require_same_function(const std::filesystem::path& path, const checkpoint::ModelShape& model) {
  const std::string name = printable(path.string());
  const Json config = read_json_object(path, most_bytes);
  require_gpt2(name, config);
  Comparison all(config);
  const auto number = [](Index value) { return static_cast<double>(value); };
  all.number({"n_layer", "num_hidden_layers"}, 12, "model.layers", number(model.layers));
  all.number({"n_embd", "hidden_size"}, 768, "model.hidden", number(model.hidden));
  all.number({"n_head", "num_attention_heads"}, 12, "model.heads", number(model.heads));
  all.number({"n_positions", "max_position_embeddings"}, 1024, "model.sequence",
             number(model.sequence));
  all.number({"vocab_size"}, gpt2_vocab, "model.vocab", number(model.vocab));
  if (const auto inner = config.find("n_inner"); inner != config.end() && !inner->is_null()) {
    all.number({"n_inner"}, 0, "model.feed_forward", number(model.feed_forward));
  } else if (model.feed_forward != 4 * model.hidden) {
    all.number({"n_inner"}, 4 * model.hidden, "model.feed_forward", number(model.feed_forward));
  }
  all.number({"layer_norm_epsilon"}, 1e-5, "model.layernorm_eps", model.layernorm_eps);
  all.boolean("tie_word_embeddings", true, "model.tied_embeddings", model.tied_embeddings != 0);
  all.activation("activation_function");
  all.fixed("scale_attn_weights", true, true, "always divides by the root of the head size");
  all.fixed("scale_attn_by_inverse_layer_idx", false, false,
            "scales attention alike in all layers");
  all.fixed("add_cross_attention", false, false, "has no cross-attention");
  KZERO_REQUIRE(all.problems().empty(), ExitCode::files,
                "{}: describes another model than the deck:\n  {}\n(change the deck; if this "
                "config.json belongs to other weights, move these into a folder of their own)",
                name, fmt::join(all.problems(), "\n  "));
}

std::string gpt2_config(const checkpoint::ModelShape& model) {
  const Json end_of_text = model.vocab == gpt2_vocab ? Json(gpt2_end_of_text) : Json(nullptr);
  const nlohmann::ordered_json config{{mark, "kzero"},
                                      {"architectures", {"GPT2LMHeadModel"}},
                                      {"model_type", "gpt2"},
                                      {"activation_function", "gelu_new"},
                                      {"n_layer", model.layers},
                                      {"n_embd", model.hidden},
                                      {"n_head", model.heads},
                                      {"n_positions", model.sequence},
                                      {"n_ctx", model.sequence},
                                      {"n_inner", model.feed_forward},
                                      {"vocab_size", model.vocab},
                                      {"bos_token_id", end_of_text},
                                      {"eos_token_id", end_of_text},
                                      {"layer_norm_epsilon", model.layernorm_eps},
                                      {"tie_word_embeddings", model.tied_embeddings != 0},
                                      {"scale_attn_weights", true},
                                      {"scale_attn_by_inverse_layer_idx", false},
                                      {"attn_pdrop", 0.0},
                                      {"embd_pdrop", 0.0},
                                      {"resid_pdrop", 0.0},
                                      {"torch_dtype", "float32"}};
  return config.dump(2) + "\n";
}

bool is_config_of_kzero(const std::filesystem::path& path) {
  try {
    return read_json_object(path, most_bytes).contains(mark);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace kzero::convert
