#include <fmt/format.h>

#include <string>

#include "deck/rule_parts.hpp"
#include "deck/schema.hpp"

namespace kzero::deck {

namespace {

class ExpertRules : ViolationList {
 public:
  explicit ExpertRules(const Config& config) : config_(config), model_(config.model) {}

  std::vector<Violation> apply() {
    if (model_.experts == 0) {
      check_without();
    } else {
      check_choices();
      check_balance();
      check_excluded();
    }
    return std::move(violations_);
  }

 private:
  bool needs_experts() const {
    return model_.family == ModelFamily::olmoe || model_.family == ModelFamily::mixtral;
  }

  void check_without() {
    refuse_if(
        needs_experts(), {"model.experts", "model.family"},
        fmt::format("model.family = \"{}\" needs model.experts above 0", name_of(model_.family)));
    for (const char* path : {"model.experts_per_token", "model.normalized_gates",
                             "model.shared_feed_forward", "model.router_score", "model.router_bias",
                             "model.router_aux_loss", "model.router_z_loss"}) {
      const Key& key = *find_key(path);
      const Value value = key.get(config_);
      refuse_if(!needs_experts() && value != key.get(Config()), {path, "model.experts"},
                fmt::format("{} = {} needs model.experts above 0", path, as_toml(key, value)));
    }
  }

  void check_choices() {
    const Index chosen = model_.experts_per_token;
    refuse_if(chosen < 1 || chosen > model_.experts, {"model.experts_per_token", "model.experts"},
              fmt::format("model.experts_per_token must be from 1 to model.experts = {}, found {}",
                          model_.experts, chosen));
  }

  void check_balance() {
    const double rate = model_.router_bias_rate;
    refuse_if(model_.router_score == RouterScore::sigmoid &&
                  (model_.router_aux_loss > 0 || model_.router_z_loss > 0),
              {"model.router_score", "model.router_aux_loss", "model.router_z_loss"},
              fmt::format("model.router_aux_loss and model.router_z_loss must be 0 with "
                          "model.router_score = \"sigmoid\", found {} and {}: model.router_bias = "
                          "true balances experts without a loss",
                          model_.router_aux_loss, model_.router_z_loss));
    refuse_if(model_.shared_gate && model_.shared_feed_forward == 0,
              {"model.shared_gate", "model.shared_feed_forward"},
              "model.shared_gate = true needs model.shared_feed_forward above 0");
    refuse_if(!model_.router_bias && rate != Model().router_bias_rate,
              {"model.router_bias_rate", "model.router_bias"},
              fmt::format("model.router_bias_rate = {} needs model.router_bias = true", rate));
    refuse_if(model_.router_bias && rate != 0 && trains_adapters(config_.lora),
              {"model.router_bias_rate", "lora.rank"},
              fmt::format("model.router_bias_rate must be 0 with lora.rank = {}, found {}: the "
                          "model's own parameters do not change",
                          config_.lora.rank, rate));
  }

  /// What experts do not compute yet is refused by name.
  void check_excluded() {
    refuse_if(config_.train.tile_rows > 0, {"train.tile_rows", "model.experts"},
              fmt::format("train.tile_rows must be 0 with model.experts = {}, found {}: experts "
                          "compute the rows of a complete micro-batch",
                          model_.experts, config_.train.tile_rows));
    refuse_if(model_.dropout > 0, {"model.dropout", "model.experts"},
              fmt::format("model.dropout must be 0 with model.experts = {}, found {}",
                          model_.experts, model_.dropout));
    refuse_if(model_.residual_scale != 1, {"model.residual_scale", "model.experts"},
              fmt::format("model.residual_scale must be 1 with model.experts = {}, found {}",
                          model_.experts, model_.residual_scale));
    const bool has_losses = model_.router_aux_loss > 0 || model_.router_z_loss > 0;
    refuse_if(
        has_losses && config_.train.sequence_chunks > 1,
        {"model.router_aux_loss", "model.router_z_loss", "train.sequence_chunks", "grid.sequence"},
        fmt::format("model.router_aux_loss and model.router_z_loss must be 0 with "
                    "train.sequence_chunks = {}, found {} and {}: they are means over a "
                    "complete micro-batch",
                    config_.train.sequence_chunks, model_.router_aux_loss, model_.router_z_loss));
  }

  const Config& config_;
  const Model& model_;
};

}  // namespace

std::vector<Violation> apply_expert_rules(const Config& config) {
  return ExpertRules(config).apply();
}

}  // namespace kzero::deck
