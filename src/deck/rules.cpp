#include "deck/rules.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "deck/lora_rules.hpp"
#include "deck/model_rules.hpp"
#include "deck/problem.hpp"
#include "deck/quantity.hpp"
#include "deck/rule_parts.hpp"
#include "deck/schema.hpp"

namespace kzero::deck {

namespace {

class Rules : ViolationList {
 public:
  Rules(Config& config, const Target& target) : config_(config), target_(target) {}

  std::vector<Violation> apply() {
    check_numbers();
    refuse_foreign_keys();
    check_model();
    check_lora();
    check_grid();
    check_sequence();
    check_experts();
    check_batch();
    check_zero();
    check_recompute();
    check_optimizer();
    check_data();
    check_preference();
    check_checkpoint();
    check_order_of_sums();
    check_profile();
    check_patterns();
    return std::move(violations_);
  }

 private:
  /// Rejects numbers that fp32, in which kernels compute, cannot represent: a non-zero number must
  /// not become 0, and a number below 1 must not become 1.
  void check_numbers() {
    for (const Key& key : keys()) {
      if (key.kind != Kind::real) continue;
      const double value = std::get<double>(key.get(config_));
      const auto rounded = static_cast<float>(value);
      refuse_if(value != 0 && rounded == 0, {key.path},
                fmt::format("{} = {} rounds to 0 in fp32; the smallest number there is {}",
                            key.path, value, std::numeric_limits<float>::denorm_min()));
      const bool leaves = key.range.high_end == End::excluded && rounded >= key.range.high;
      refuse_if(leaves, {key.path},
                fmt::format("{} = {} rounds to {} in fp32; it must be at most {}", key.path, value,
                            rounded, std::nextafter(static_cast<float>(key.range.high), 0.0F)));
    }
  }

  /// Refuses keys that the model's family or the kind of optimizer does not have, rather than
  /// ignoring them.
  void refuse_foreign_keys() {
    const Config defaults;
    for (const Key& key : keys()) {
      if (key.depends_on.empty() || use_in(key, config_) != nullptr) continue;
      const Key& other = *find_key(key.depends_on);
      const Value value = key.get(config_);
      std::vector<std::string> uses;
      for (const Use& use : key.uses) uses.push_back(as_toml(other, use.value));
      refuse_if(value != key.get(defaults), {key.path, other.path},
                fmt::format("{} = {} has no effect with {} = {}; remove it, or set {} = {}",
                            key.path, as_toml(key, value), other.path,
                            as_toml(other, other.get(config_)), other.path, alternatives(uses)));
    }
  }

  void check_model() {
    for (Violation& violation : apply_model_rules(config_.model))
      violations_.push_back(std::move(violation));
  }

  void check_lora() {
    for (Violation& violation : apply_lora_rules(config_, target_.purpose))
      violations_.push_back(std::move(violation));
  }

  void check_grid() {
    Grid& grid = config_.grid;
    const Index ranks = target_.ranks;
    check_tensor();
    if (ranks == 0) return;
    if (ranks % grid.tensor != 0) {
      refuse_if(true, {"grid.tensor"},
                fmt::format("grid.tensor must divide the number of ranks, {}, found {}", ranks,
                            grid.tensor));
      return;
    }
    const Index data = ranks / grid.tensor;
    if (grid.data == 0) grid.data = data;
    refuse_if(grid.data != data, {"grid.data", "grid.tensor"},
              fmt::format("grid.data * grid.tensor = {} * {} = {} must be the number of ranks, {}; "
                          "start {} ranks or set grid.data to {} or to 0 (automatic)",
                          grid.data, grid.tensor, grid.data * grid.tensor, ranks,
                          grid.data * grid.tensor, data));
  }

  void check_tensor() {
    const Model& model = config_.model;
    const Index tensor = config_.grid.tensor;
    refuse_if(
        model.heads % tensor != 0, {"grid.tensor", "model.heads"},
        fmt::format("grid.tensor must divide model.heads = {}, found {}", model.heads, tensor));
    const auto share = [&](Index value, const std::string& key) {
      refuse_if(value < tensor, {"grid.tensor", key},
                fmt::format("grid.tensor must be at most {} = {}, found {}", key, value, tensor));
    };
    share(model.vocab, "model.vocab");
    share(model.feed_forward, "model.feed_forward");
    if (model.shared_feed_forward > 0)
      share(model.shared_feed_forward, "model.shared_feed_forward");
    const Index kv_heads = model.kv_heads;  // 0 in families without the key
    refuse_if(kv_heads > 0 && kv_heads % tensor != 0 && tensor % kv_heads != 0,
              {"grid.tensor", "model.kv_heads"},
              fmt::format("grid.tensor must divide model.kv_heads = {} or be a multiple of it, "
                          "found {}",
                          kv_heads, tensor));
    refuse_if(
        (model.family == ModelFamily::olmo2 || model.family == ModelFamily::olmoe) &&
            kv_heads % tensor != 0,
        {"grid.tensor", "model.kv_heads"},
        fmt::format("grid.tensor must divide model.kv_heads = {}, found {}: with model.family "
                    "= \"{}\" a norm covers all heads of keys",
                    kv_heads, tensor, name_of(model.family)));
  }

  void check_sequence() {
    for (Violation& violation : apply_sequence_rules(config_))
      violations_.push_back(std::move(violation));
  }

  void check_experts() {
    for (Violation& violation : apply_expert_rules(config_))
      violations_.push_back(std::move(violation));
  }

  void check_batch() {
    for (Violation& violation : apply_batch_rules(config_))
      violations_.push_back(std::move(violation));
  }

  void check_zero() {
    Zero& zero = config_.zero;
    refuse_if(zero.parameters == SharesParameters::node && zero.stage < 3,
              {"zero.parameters", "zero.stage"},
              fmt::format("zero.parameters = \"node\" needs zero.stage = 3, found {}: other stages "
                          "keep all parameters on every rank",
                          zero.stage));
    const Index data = config_.grid.data;
    if (data == 0) return;
    refuse_if(zero.accumulate == Accumulate::local && zero.stage >= 2 && data > 1,
              {"zero.accumulate", "zero.stage"},
              fmt::format("zero.accumulate = \"local\" keeps full gradients, which zero.stage = {} "
                          "does not have; use \"reduced\" or zero.stage 0 or 1",
                          zero.stage));
    if (zero.accumulate == Accumulate::automatic) zero.accumulate = Accumulate::reduced;
  }

  void check_recompute() {
    const Recompute& recompute = config_.recompute;
    refuse_if(recompute.offload == Offload::host && recompute.mode != RecomputeMode::full,
              {"recompute.offload", "recompute.mode"},
              fmt::format("recompute.offload = \"host\" needs recompute.mode = \"full\", "
                          "found \"{}\"; use \"full\" or recompute.offload = "
                          "\"none\"",
                          name_of(recompute.mode)));
    refuse_if(recompute.partition && recompute.mode != RecomputeMode::full,
              {"recompute.partition", "recompute.mode"},
              fmt::format("recompute.partition = true needs recompute.mode = \"full\", "
                          "found \"{}\"; use \"full\" or recompute.partition = "
                          "false",
                          name_of(recompute.mode)));
    refuse_if(
        recompute.partition && config_.model.sequence_parallel,
        {"recompute.partition", "model.sequence_parallel"},
        "recompute.partition must be false with model.sequence_parallel = true: a rank then has "
        "only its part of each block's input");
  }

  void check_optimizer() {
    Optimizer& optimizer = config_.optimizer;
    if (optimizer.kind == OptimizerKind::ademamix && optimizer.slow_warmup == 0)
      optimizer.slow_warmup = config_.train.steps;
    refuse_if(optimizer.schedule != Schedule::constant && optimizer.min_lr > optimizer.lr,
              {"optimizer.min_lr", "optimizer.lr"},
              fmt::format("optimizer.min_lr must be at most optimizer.lr = {}, found {}",
                          optimizer.lr, optimizer.min_lr));
    refuse_if(optimizer.warmup > config_.train.steps, {"optimizer.warmup", "train.steps"},
              fmt::format("optimizer.warmup must be at most train.steps = {}, found {}",
                          config_.train.steps, optimizer.warmup));
    const Index max_decay = std::max<Index>(1, config_.train.steps - optimizer.warmup);
    refuse_if(
        optimizer.schedule == Schedule::wsd && (optimizer.decay < 1 || optimizer.decay > max_decay),
        {"optimizer.decay", "optimizer.schedule", "train.steps", "optimizer.warmup"},
        fmt::format("optimizer.schedule = \"wsd\" needs optimizer.decay from 1 to {} "
                    "(train.steps - optimizer.warmup), found {}",
                    max_decay, optimizer.decay));
    refuse_if(optimizer.skip_above > 0 && optimizer.skip_above <= 1, {"optimizer.skip_above"},
              fmt::format("optimizer.skip_above must be more than 1, or 0 for off, found {}",
                          optimizer.skip_above));
    refuse_if(optimizer.kind == OptimizerKind::ademamix && optimizer.beta3 < optimizer.beta1,
              {"optimizer.beta3", "optimizer.beta1"},
              fmt::format("optimizer.beta3 must be at least optimizer.beta1 = {}, found {}: its "
                          "moment is the slow one",
                          optimizer.beta1, optimizer.beta3));
    check_groups();
    check_base_width();
    int exponent = 0;
    const double fraction = std::frexp(optimizer.loss_scale, &exponent);
    refuse_if(
        fraction != 0.5, {"optimizer.loss_scale"},
        fmt::format("optimizer.loss_scale must be a power of two, found {}; nearest: {} and {}",
                    optimizer.loss_scale, std::ldexp(0.5, exponent), std::ldexp(1.0, exponent)));
  }

  void check_base_width() {
    const Index base = config_.model.base_width;
    if (base == 0) return;
    const OptimizerKind kind = config_.optimizer.kind;
    refuse_if(
        kind != OptimizerKind::adamw && kind != OptimizerKind::lion && kind != OptimizerKind::muon,
        {"model.base_width", "optimizer.kind"},
        fmt::format("model.base_width = {} needs optimizer.kind = \"adamw\", \"lion\" or "
                    "\"muon\", found \"{}\": no rule says how its rates follow the width",
                    base, name_of(kind)));
    refuse_if(
        trains_adapters(config_.lora), {"model.base_width", "lora.rank"},
        fmt::format("model.base_width = {} needs lora.rank = 0, found {}: adapters have rates "
                    "of their own",
                    base, config_.lora.rank));
  }

  void check_groups() {
    const auto& groups = config_.optimizer.groups;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::string path = table_path("optimizer.group", static_cast<Index>(i));
      refuse_if(groups[i].match.empty(), {path + ".match", path},
                fmt::format("{}.match must be a pattern, found none", path));
      const double decay = groups[i].weight_decay;
      refuse_if(decay < 0 && decay != -1, {path + ".weight_decay", path},
                fmt::format("{0}.weight_decay must be at least 0, or -1 for the value without the "
                            "group, found {1}",
                            path, decay));
    }
  }

  /// Runs last: only a valid model has parameters.
  void check_patterns() {
    const auto& groups = config_.optimizer.groups;
    if (groups.empty() || !violations_.empty() || !target_.parameter_names) return;
    const std::vector<std::string> names = target_.parameter_names(config_);
    const std::vector<std::string> reasons = empty_groups(groups, names);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::string path = table_path("optimizer.group", static_cast<Index>(i));
      refuse_if(!reasons[i].empty(), {path + ".match", path},
                fmt::format("{}.match = \"{}\" {}; its parameters are {}, ..., {}", path,
                            groups[i].match, reasons[i], names.front(), names.back()));
    }
  }

  void check_data() {
    for (Violation& violation : apply_data_rules(config_, target_.purpose))
      violations_.push_back(std::move(violation));
  }

  void check_preference() {
    for (Violation& violation : apply_preference_rules(config_, target_.purpose))
      violations_.push_back(std::move(violation));
    for (Violation& violation : apply_distill_rules(config_))
      violations_.push_back(std::move(violation));
  }

  void check_checkpoint() {
    const Checkpoint& checkpoint = config_.checkpoint;
    const Run& run = config_.run;
    const bool has_folder = !checkpoint.folder.empty();
    const auto needs_folder = [&](bool is_set, const std::string& key, const std::string& value) {
      refuse_if(is_set && !has_folder, {key, "checkpoint.folder"},
                fmt::format("{} = {} needs checkpoint.folder", key, value));
    };
    refuse_if(checkpoint.asynchronous && checkpoint.ranks_per_file > 1,
              {"checkpoint.asynchronous", "checkpoint.ranks_per_file"},
              fmt::format("checkpoint.asynchronous = true needs one file per rank; "
                          "checkpoint.ranks_per_file must be 1, found {}",
                          checkpoint.ranks_per_file));
    needs_folder(run.max_steps > 0, "run.max_steps", fmt::format("{}", run.max_steps));
    needs_folder(run.wall_limit > 0, "run.wall_limit",
                 fmt::format("\"{}\"", format_duration(run.wall_limit)));
    needs_folder(!run.stop_file.empty(), "run.stop_file", fmt::format("\"{}\"", run.stop_file));
    needs_folder(run.replay == Replay::check, "run.replay", "\"check\"");
    refuse_if(run.replay == Replay::check && run.metrics.empty(), {"run.replay", "run.metrics"},
              "run.replay = \"check\" needs run.metrics");
    refuse_if(run.wall_limit > 0 && run.wall_limit <= run.stop_margin,
              {"run.wall_limit", "run.stop_margin"},
              fmt::format("run.wall_limit must be more than run.stop_margin = {}, found {}",
                          format_duration(run.stop_margin), format_duration(run.wall_limit)));
  }

  void check_order_of_sums() {
    const Run& run = config_.run;
    if (run.deterministic) return;
    const auto needs = [&](bool is_met, const std::string& key, const std::string& wanted) {
      refuse_if(!is_met, {"run.deterministic", key},
                fmt::format("run.deterministic = false needs {} {}", key, wanted));
    };
    needs(config_.train.precision != Dtype::fp32, "train.precision", "= \"bf16\" or \"fp16\"");
    needs(run.attention != AttentionKind::kzero, "run.attention", "= \"auto\" or \"cudnn\"");
    needs(run.verify_every == 0, "run.verify_every", "= 0: no step has the same bits twice");
    needs(run.replay != Replay::check, "run.replay",
          "other than \"check\": no step has the same bits twice");
  }

  void check_profile() {
    const Run& run = config_.run;
    if (run.profile.empty()) {
      refuse_if(run.profile_steps != Run().profile_steps, {"run.profile_steps", "run.profile"},
                fmt::format("run.profile_steps = \"{}\" needs run.profile", run.profile_steps));
      return;
    }
    const auto steps = profiled_steps(run);
    refuse_if(!steps, {"run.profile_steps"},
              fmt::format("run.profile_steps must be the first and the last step, as in \"10-12\", "
                          "the last at least the first, found \"{}\"",
                          run.profile_steps));
    refuse_if(steps && steps->last >= config_.train.steps,
              {"run.profile_steps", "run.profile", "train.steps"},
              fmt::format("run.profile_steps must end before train.steps = {} (steps are numbered "
                          "from 0), found \"{}\"",
                          config_.train.steps, run.profile_steps));
  }

  Config& config_;
  const Target& target_;
};

}  // namespace

std::vector<Violation> apply_rules(Config& config, const Target& target) {
  return Rules(config, target).apply();
}

void resolve(Config& config, const Target& target) {
  SourceLocation place;
  place.text = "configuration";
  std::vector<Problem> problems;
  for (const Key* key : keys_in(config)) {
    if (is_allowed(*key, key->get(config))) continue;
    problems.push_back({place, fmt::format("{} must be {}", key->path, allowed(*key))});
  }
  throw_if_any(problems);
  for (Violation& violation : apply_rules(config, target)) {
    problems.push_back({place, std::move(violation.text)});
  }
  throw_if_any(std::move(problems));
}

namespace {

bool group_matches(const OptimizerGroup& group, const std::string& parameter) {
  return ::fnmatch(group.match.c_str(), parameter.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace

Index group_of(const std::vector<OptimizerGroup>& groups, const std::string& parameter) {
  const auto found = std::ranges::find_if(
      groups, [&](const OptimizerGroup& group) { return group_matches(group, parameter); });
  return found == groups.end() ? -1 : found - groups.begin();
}

std::vector<std::string> empty_groups(const std::vector<OptimizerGroup>& groups,
                                      const std::vector<std::string>& parameters) {
  std::vector<std::string> reasons(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto match = [&](const std::string& name) { return group_matches(groups[g], name); };
    const auto own = [&](const std::string& name) {
      return group_of(groups, name) == static_cast<Index>(g);
    };
    if (std::ranges::any_of(parameters, own)) continue;
    const auto other = std::ranges::find_if(parameters, match);
    reasons[g] = other == parameters.end()
                     ? "matches no parameter of the model"
                     : fmt::format(
                           "matches only parameters of earlier groups, such as {} of "
                           "optimizer.group[{}]",
                           *other, group_of(groups, *other));
  }
  return reasons;
}

}  // namespace kzero::deck
