#include "deck/model_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "deck/linear_layers.hpp"
#include "deck/rule_parts.hpp"
#include "deck/schema.hpp"

namespace kzero::deck {

namespace {

class ModelRules : ViolationList {
 public:
  explicit ModelRules(Model& model) : model_(model) {}

  std::vector<Violation> apply() {
    if (family_has("model.kv_heads")) {
      check_heads();
    } else {
      check_width();
    }
    if (family_has("model.rope_theta")) check_rope();
    if (family_has("model.no_rope_every")) check_layers_without_rope();
    if (family_has("model.window")) check_windows();
    fill_in_feed_forward();
    if (model_.base_width > 0) apply_base_width();
    return std::move(violations_);
  }

 private:
  bool family_has(const char* path) const {
    return has_use(*find_key(path), name_of(model_.family));
  }

  void check_width() {
    refuse_if(
        model_.hidden % model_.heads != 0, {"model.hidden", "model.heads"},
        fmt::format("model.hidden must be a multiple of model.heads = {}, found {}; {}",
                    model_.heads, model_.hidden, nearest_multiples(model_.hidden, model_.heads)));
  }

  void check_heads() {
    if (model_.kv_heads == 0) model_.kv_heads = model_.heads;
    refuse_if(model_.heads % model_.kv_heads != 0, {"model.kv_heads", "model.heads"},
              fmt::format("model.kv_heads must divide model.heads = {}, found {}", model_.heads,
                          model_.kv_heads));
    constexpr const char* reason = "for rotary positions turn pairs of its elements";
    if (model_.head_dim != 0) {
      refuse_if(model_.head_dim % 2 != 0, {"model.head_dim"},
                fmt::format("model.head_dim must be even, {}, found {}", reason, model_.head_dim));
      return;
    }
    check_width();
    model_.head_dim = model_.hidden / model_.heads;
    const bool is_whole = model_.hidden % model_.heads == 0;
    refuse_if(is_whole && model_.head_dim % 2 != 0, {"model.hidden", "model.heads"},
              fmt::format("model.hidden / model.heads = {} / {} = {} must be even, {}; or set "
                          "model.head_dim",
                          model_.hidden, model_.heads, model_.head_dim, reason));
  }

  void check_windows() {
    const Index every = model_.full_attention_every;
    refuse_if(every > 0 && model_.window == 0, {"model.full_attention_every", "model.window"},
              fmt::format("model.full_attention_every = {} needs model.window above 0", every));
    refuse_if(every == 1, {"model.full_attention_every", "model.window"},
              "model.full_attention_every must be 0 or at least 2, found 1: no layer would have "
              "model.window");
    refuse_if(every > model_.layers, {"model.full_attention_every", "model.layers"},
              fmt::format("model.full_attention_every must be at most model.layers = {}, found {}",
                          model_.layers, every));
    refuse_if(model_.window_rope_theta > 0 && every == 0,
              {"model.window_rope_theta", "model.full_attention_every"},
              fmt::format("model.window_rope_theta = {} needs model.full_attention_every above 0: "
                          "without it all layers rotate by model.rope_theta",
                          model_.window_rope_theta));
  }

  void check_layers_without_rope() {
    const Index every = model_.no_rope_every;
    refuse_if(
        every == 1, {"model.no_rope_every"},
        "model.no_rope_every must be 0 or at least 2, found 1: no layer would have positions");
    refuse_if(every > model_.layers, {"model.no_rope_every", "model.layers"},
              fmt::format("model.no_rope_every must be at most model.layers = {}, found {}",
                          model_.layers, every));
    refuse_if(every > 0 && model_.qk_norm, {"model.no_rope_every", "model.qk_norm"},
              "model.no_rope_every needs model.qk_norm = false: kzero norms heads where it rotates "
              "them");
  }

  void check_rope() {
    const auto scaling = model_.rope_scaling;
    const bool has_range = scaling == RopeScaling::llama3 || scaling == RopeScaling::yarn;
    needs_scaling("model.rope_factor", scaling != RopeScaling::none);
    needs_scaling("model.rope_original_sequence", has_range);
    for (const char* key : {"model.rope_low_freq_factor", "model.rope_high_freq_factor"})
      needs_scaling(key, scaling == RopeScaling::llama3);
    for (const char* key :
         {"model.rope_beta_fast", "model.rope_beta_slow", "model.rope_attention_factor"})
      needs_scaling(key, scaling == RopeScaling::yarn);
    refuse_if(has_range && model_.rope_original_sequence == 0,
              {"model.rope_original_sequence", "model.rope_scaling"},
              fmt::format("model.rope_scaling = \"{}\" needs model.rope_original_sequence above 0",
                          name_of(scaling)));
    refuse_if(scaling == RopeScaling::llama3 &&
                  model_.rope_high_freq_factor <= model_.rope_low_freq_factor,
              {"model.rope_high_freq_factor", "model.rope_low_freq_factor"},
              fmt::format("model.rope_high_freq_factor must be above model.rope_low_freq_factor = "
                          "{}, found {}",
                          model_.rope_low_freq_factor, model_.rope_high_freq_factor));
    refuse_if(scaling == RopeScaling::yarn && model_.rope_beta_fast <= model_.rope_beta_slow,
              {"model.rope_beta_fast", "model.rope_beta_slow"},
              fmt::format("model.rope_beta_fast must be above model.rope_beta_slow = {}, found {}",
                          model_.rope_beta_slow, model_.rope_beta_fast));
    refuse_if(scaling == RopeScaling::yarn && model_.rope_theta <= 1,
              {"model.rope_theta", "model.rope_scaling"},
              fmt::format("model.rope_scaling = \"yarn\" needs model.rope_theta above 1, found {}",
                          model_.rope_theta));
  }

  /// Refuses a key of rope_scaling that the chosen scaling does not use.
  void needs_scaling(const char* path, bool is_used) {
    const Key& key = *find_key(path);
    Config config;
    const Value default_value = key.get(config);
    config.model = model_;
    const Value value = key.get(config);
    refuse_if(!is_used && value != default_value, {path, "model.rope_scaling"},
              fmt::format("{} = {} has no effect with model.rope_scaling = \"{}\"", path,
                          as_toml(key, value), name_of(model_.rope_scaling)));
  }

  /// Maximal update parametrization: what follows from the base width besides deviations and rates.
  void apply_base_width() {
    const Index base = model_.base_width;
    refuse_if(base > model_.hidden, {"model.base_width", "model.hidden"},
              fmt::format("model.base_width must be at most model.hidden = {}, found {}",
                          model_.hidden, base));
    refuse_if(
        model_.experts > 0, {"model.base_width", "model.experts"},
        fmt::format("model.base_width = {} needs model.experts = 0, found {}: no rule says how "
                    "routers follow",
                    base, model_.experts));
    if (base > model_.hidden || model_.head_dim == 0) return;
    const auto follow = [&](const char* key, double& value, double usual, double wanted) {
      if (value == usual) value = wanted;
      refuse_if(value != wanted, {key, "model.base_width"},
                fmt::format("{} must be {} with model.base_width = {}, or be left out, found {}",
                            key, wanted, base, value));
    };
    // 8 / d is 1 / sqrt(d) for the usual d = 64, as in the authors' package (mup's README).
    follow("model.attention_scale", model_.attention_scale, 0,
           8 / static_cast<double>(model_.head_dim));
    follow("model.logit_divisor", model_.logit_divisor, 1,
           static_cast<double>(model_.hidden) / static_cast<double>(base));
  }

  void fill_in_feed_forward() {
    if (model_.feed_forward != 0) return;
    const auto layers = linear_layers(model_.family);
    const bool has_gate =
        std::ranges::find(layers, ProductPart::gate, &LinearLayer::part) != layers.end();
    model_.feed_forward = has_gate ? round_up(model_.hidden * 8 / 3, 256) : 4 * model_.hidden;
  }

  Model& model_;
};

}  // namespace

std::vector<Violation> apply_model_rules(Model& model) { return ModelRules(model).apply(); }

std::string nearest_multiples(Index value, Index unit) {
  const Index below = value / unit * unit;
  return below > 0 ? fmt::format("nearest: {} and {}", below, below + unit)
                   : fmt::format("nearest: {}", unit);
}

}  // namespace kzero::deck
