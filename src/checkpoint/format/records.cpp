#include "checkpoint/format/records.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "deck/architecture.hpp"
#include "deck/lora_rules.hpp"
#include "deck/model_rules.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

namespace {

/// The attribute of a key of [model]: its name, except for a key that predates RMSNorm.
std::string attribute_of(const deck::Key& key) {
  return key.path == "model.norm_eps" ? "layernorm_eps" : key.name();
}

deck::Value get_model_value(const storage::Hdf5File& file, const deck::Key& key) {
  const std::string name = attribute_of(key);
  switch (key.kind) {
    case deck::Kind::integer:
      return file.attribute<Index>("/model", name);
    case deck::Kind::real:
      return file.attribute<double>("/model", name);
    case deck::Kind::boolean:
      return file.attribute<Index>("/model", name) != 0;
    default:
      return file.attribute<std::string>("/model", name);
  }
}

/// Keys that are younger than format 3. A model whose file lacks one has its default, as the
/// program that wrote the file computed.
constexpr std::string_view younger_keys[] = {"model.window",
                                             "model.full_attention_every",
                                             "model.window_rope_theta",
                                             "model.no_rope_every",
                                             "model.attention_scale",
                                             "model.embedding_scale",
                                             "model.residual_scale",
                                             "model.logit_divisor",
                                             "model.experts",
                                             "model.experts_per_token",
                                             "model.normalized_gates",
                                             "model.shared_feed_forward",
                                             "model.shared_gate",
                                             "model.router_score",
                                             "model.router_bias"};

bool is_missing(const storage::Hdf5File& file, const deck::Key& key) {
  return std::ranges::find(younger_keys, key.path) != std::end(younger_keys) &&
         !file.has_attribute("/model", attribute_of(key));
}

}  // namespace

void put_model(storage::Hdf5File& file, const deck::Model& model) {
  file.create_group("/model");
  for (const deck::Key* key : deck::defining_keys(model.family)) {
    const deck::Value value = deck::model_value(*key, model);
    const std::string name = attribute_of(*key);
    if (const auto* number = std::get_if<Index>(&value)) {
      file.set_attribute("/model", name, *number);
    } else if (const auto* real = std::get_if<double>(&value)) {
      file.set_attribute("/model", name, *real);
    } else if (const auto* boolean = std::get_if<bool>(&value)) {
      file.set_attribute("/model", name, Index{*boolean});
    } else {
      file.set_attribute("/model", name, std::get<std::string>(value));
    }
  }
}

deck::Model get_model(const storage::Hdf5File& file, const std::filesystem::path& path) {
  deck::Model model;
  const auto take = [&](const deck::Key& key) {
    const deck::Value value = get_model_value(file, key);
    KZERO_REQUIRE(deck::is_allowed(key, value), ExitCode::files, "{}: its {} is not {}",
                  path.string(), key.path, deck::allowed(key));
    deck::set_model_value(key, value, model);
  };
  const deck::Key& family = *deck::find_key("model.family");
  take(family);
  for (const deck::Key* key : deck::defining_keys(model.family)) {
    if (key != &family && !is_missing(file, *key)) take(*key);
  }
  const auto violations = deck::apply_model_rules(model);
  KZERO_REQUIRE(violations.empty(), ExitCode::files, "{}: its model is impossible: {}",
                path.string(), violations.front().text);
  return model;
}

namespace {

constexpr const char* adapter_group = "/adapters";

void require_allowed(const deck::Lora& lora, const deck::Model& model,
                     const std::filesystem::path& path) {
  deck::Config config;
  config.model = model;
  config.lora = lora;
  for (const char* name : {"lora.rank", "lora.alpha"}) {
    const deck::Key& key = *deck::find_key(name);
    const deck::Value value = key.get(config);
    KZERO_REQUIRE(deck::is_allowed(key, value), ExitCode::files, "{}: its {} is {}, not {}",
                  path.string(), name, as_toml(key, value), deck::allowed(key));
  }
  KZERO_REQUIRE(lora.rank > 0, ExitCode::files, "{}: its adapters have the rank 0", path.string());
  const auto violations = deck::apply_lora_rules(config, deck::Purpose::plan);
  KZERO_REQUIRE(violations.empty() && config.lora.targets == lora.targets, ExitCode::files,
                "{}: its adapters are for the layers {}, which no run of its model saves",
                path.string(), printable_start(fmt::format("{}", fmt::join(lora.targets, ", "))));
}

}  // namespace

void put_adapters(storage::Hdf5File& file, const std::optional<AdapterRecord>& record) {
  if (!record) return;
  file.set_attribute("/", "adapter_rank", record->lora.rank);
  file.create_group(adapter_group);
  file.set_attribute(adapter_group, "alpha", record->lora.alpha);
  file.set_attribute(adapter_group, "base_hash", record->base_hash);
  file.write("/adapters/targets", std::span<const std::string>(record->lora.targets),
             {static_cast<Index>(record->lora.targets.size())});
}

std::optional<AdapterRecord> get_adapters(const storage::Hdf5File& file, const deck::Model& model,
                                          const std::filesystem::path& path) {
  if (!file.has_attribute("/", "adapter_rank")) return std::nullopt;
  AdapterRecord record;
  record.lora.rank = file.attribute<Index>("/", "adapter_rank");
  record.lora.alpha = file.attribute<double>(adapter_group, "alpha");
  record.base_hash = file.attribute<std::uint64_t>(adapter_group, "base_hash");
  record.lora.targets = file.read<std::string>("/adapters/targets");
  require_allowed(record.lora, model, path);
  return record;
}

namespace {

constexpr const char* norm_group = "/norms";

}  // namespace

void put_norms(storage::Hdf5File& file, const std::optional<NormRecord>& record) {
  if (!record) return;
  const auto count = static_cast<Index>(record->norms.size());
  file.set_attribute("/", "norm_record", count);
  file.create_group(norm_group);
  file.set_attribute(norm_group, "skipped", record->skipped);
  file.set_attribute(norm_group, "skipped_in_row", record->skipped_in_row);
  if (count > 0) file.write("/norms/applied", std::span<const double>(record->norms), {count});
}

std::optional<NormRecord> get_norms(const storage::Hdf5File& file, Index skipped, Index in_row,
                                    const std::filesystem::path& path) {
  if (!file.has_attribute("/", "norm_record")) return std::nullopt;
  NormRecord record;
  if (file.attribute<Index>("/", "norm_record") > 0)
    record.norms = file.read<double>("/norms/applied");
  record.skipped = file.attribute<Index>(norm_group, "skipped");
  record.skipped_in_row = file.attribute<Index>(norm_group, "skipped_in_row");
  const bool are_norms = std::ranges::all_of(
      record.norms, [](double norm) { return std::isfinite(norm) && norm >= 0; });
  KZERO_REQUIRE(are_norms && record.skipped_in_row >= 0 &&
                    record.skipped_in_row <= record.skipped && record.skipped <= skipped &&
                    record.skipped_in_row <= in_row,
                ExitCode::files,
                "{}: its record of gradient norms is impossible: {} norms, {} steps skipped for "
                "theirs, {} of them in a row",
                path.string(), record.norms.size(), record.skipped, record.skipped_in_row);
  return record;
}

namespace {

constexpr const char* loss_group = "/loss";

/// Calls f(attribute, value) for every value of a record. Reading and writing share this list.
template <class Record, class F>
void for_each_value(Record& record, F&& f) {
  f("last", record.last);
  f("included", record.included);
  f("mean", record.mean);
  f("change", record.change);
  f("lowest", record.lowest);
  f("counted", record.counted);
  f("sane_step", record.sane_step);
}

}  // namespace

void put_loss(storage::Hdf5File& file, const std::optional<LossRecord>& record) {
  if (!record) return;
  file.set_attribute("/", "loss_record", Index{1});
  file.create_group(loss_group);
  for_each_value(*record, [&](const char* name, const auto& value) {
    file.set_attribute(loss_group, name, value);
  });
}

std::optional<LossRecord> get_loss(const storage::Hdf5File& file, Index steps,
                                   const std::filesystem::path& path) {
  if (!file.has_attribute("/", "loss_record")) return std::nullopt;
  LossRecord record;
  for_each_value(record, [&](const char* name, auto& value) {
    value = file.attribute<std::remove_reference_t<decltype(value)>>(loss_group, name);
  });
  const bool is_finite = std::isfinite(record.included) && std::isfinite(record.mean) &&
                         std::isfinite(record.change) && std::isfinite(record.lowest);
  KZERO_REQUIRE(is_finite && record.counted >= 0 && record.counted <= steps &&
                    record.sane_step >= -1 && record.sane_step < steps,
                ExitCode::files,
                "{}: its record of losses is impossible: {} of {} steps, the last of them number "
                "{}",
                path.string(), record.counted, steps, record.sane_step);
  return record;
}

}  // namespace kzero::checkpoint
