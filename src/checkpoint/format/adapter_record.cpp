#include "checkpoint/format/adapter_record.hpp"

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "deck/architecture.hpp"
#include "deck/lora_rules.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

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

}  // namespace kzero::checkpoint
