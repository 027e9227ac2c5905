#include "convert/adapter_export.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "checkpoint/format/parameter_hash.hpp"
#include "convert/adapter.hpp"
#include "convert/export_folder.hpp"
#include "convert/finite.hpp"
#include "convert/weight_files.hpp"
#include "storage/files.hpp"

namespace kzero::convert {

namespace {

namespace fs = std::filesystem;
using checkpoint::Parameter;
using checkpoint::Range;

constexpr std::string_view weight = ".weight";

/// All values of a parameter.
std::vector<float> read_all(const ExportSource& source, const Parameter& parameter) {
  std::vector<float> values(static_cast<std::size_t>(parameter.elements()));
  source.read(parameter, {0, parameter.elements()}, values);
  require_finite(source.from, parameter, {0, parameter.elements()}, values);
  return values;
}

std::string config_of_adapter(const checkpoint::Manifest& manifest, const std::string& base) {
  const deck::Lora& lora = manifest.adapters->lora;
  const nlohmann::ordered_json config{
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path", base},
      {"r", lora.rank},
      {"lora_alpha", lora.alpha},
      {"lora_dropout", 0.0},
      {"bias", "none"},
      {"target_modules", lora.targets},
      {"fan_in_fan_out", manifest.model.family == deck::ModelFamily::gpt2},
      {"inference_mode", true}};
  return config.dump(2) + '\n';
}

void require_free(const fs::path& folder) {
  const fs::path weights = folder / adapter_weights_name, config = folder / adapter_config_name;
  const bool is_ours = is_there(weights) && is_written_by_kzero(weights);
  for (const fs::path& file : {weights, config})
    KZERO_REQUIRE(!is_there(file) || is_ours, ExitCode::files,
                  "{}: exists and was not written by kzero convert; move it away, or choose "
                  "another folder",
                  printable(file.string()));
}

/// Adds scale * B A to weights one parameter after another, and hashes the weights without it.
class Merge {
 public:
  Merge(const checkpoint::Found& found, const ExportSource& source, const Weights& base,
        const std::string& path, const param::Table& table)
      : found_(found),
        source_(source),
        base_(base),
        path_(path),
        positions_(checkpoint::positions_of(checkpoint::parameters_of(table))) {
    const deck::Lora& lora = found.manifest.adapters->lora;
    scale_ = static_cast<float>(lora.alpha / static_cast<double>(lora.rank));
  }

  void read(const Parameter& parameter, Range range, std::span<float> values) {
    base_.load_range(parameter.name, range, values);
    const checkpoint::StateShard shard{parameter.name, {range}, {{param::master_weights, values}}};
    hash_ += checkpoint::hash_of(shard, positions_.at(parameter.name));
    if (parameter.name != name_) take_adapter(parameter);
    if (a_.empty()) return;
    const bool is_in_out = found_.manifest.model.family == deck::ModelFamily::gpt2;
    const Index columns = parameter.shape[1], rank = found_.manifest.adapters->lora.rank;
    const Index in = is_in_out ? parameter.shape[0] : columns;
    for (Index i = 0; i < range.count; ++i) {
      const Index row = (range.begin + i) / columns, column = (range.begin + i) % columns;
      const float* b = b_.data() + (is_in_out ? column : row) * rank;
      const float* a = a_.data() + (is_in_out ? row : column);
      float product = 0;
      for (Index r = 0; r < rank; ++r) product += b[r] * a[r * in];
      values[static_cast<std::size_t>(i)] += scale_ * product;
    }
  }

  void require_base() const {
    const std::uint64_t wanted = found_.manifest.adapters->base_hash;
    KZERO_REQUIRE(hash_ == wanted, ExitCode::files,
                  "{}: its adapters were trained on weights of hash {}, but those of {} have hash "
                  "{}; put the weights that they were trained on there",
                  printable(found_.path.string()), format_checksum(wanted), printable(path_),
                  format_checksum(hash_));
  }

 private:
  /// Reads the parameter's adapter, if it has one.
  void take_adapter(const Parameter& parameter) {
    name_ = parameter.name;
    a_.clear(), b_.clear();
    if (!name_.ends_with(weight)) return;
    const std::string layer = name_.substr(0, name_.size() - weight.size());
    for (const Parameter& p : found_.manifest.parameters) {
      if (p.name == layer + ".lora_A.weight") a_ = read_all(source_, p);
      if (p.name == layer + ".lora_B.weight") b_ = read_all(source_, p);
    }
  }

  const checkpoint::Found& found_;
  const ExportSource& source_;  // of the adapters
  const Weights& base_;
  std::string path_;
  checkpoint::Positions positions_;
  float scale_ = 1;
  std::uint64_t hash_ = 0;
  std::string name_;          // of the parameter that is read
  std::vector<float> a_, b_;  // [r,in] and [out,r] of its adapter, or empty
};

}  // namespace

std::vector<std::string> export_adapter(const checkpoint::Found& found, const ExportSource& source,
                                        const fs::path& folder, const std::string& base,
                                        const ExportOptions& options) {
  require_free(folder);
  make_folder(folder);
  const checkpoint::Manifest& manifest = found.manifest;
  SafetensorsWriter::Shapes shapes;
  for (const Parameter& p : manifest.parameters)
    shapes.emplace_back(peft_name(manifest.model.family, p.name), p.shape);
  SafetensorsWriter writer(folder / adapter_weights_name, shapes, options.dtype,
                           {{base_hash_key, format_checksum(manifest.adapters->base_hash)}});
  for (const Parameter& p : manifest.parameters) {
    const std::vector<float> values = read_all(source, p);
    require_in_range(source.from, p, {0, p.elements()}, values, options.dtype);
    writer.append(values);
  }
  writer.sync();
  writer.finish();
  storage::write_durably(folder / adapter_config_name, config_of_adapter(manifest, base));
  return {adapter_weights_name, adapter_config_name};
}

ExportSource merged_weights(const checkpoint::Found& found, const ExportSource& source,
                            const Weights& base, const std::string& path,
                            const param::Table& table) {
  const auto merge = std::make_shared<Merge>(found, source, base, path, table);
  return {found.path.string(), model_of(found.manifest), checkpoint::parameters_of(table),
          [merge](const Parameter& parameter, Range range, std::span<float> values) {
            merge->read(parameter, range, values);
          },
          [merge] { merge->require_base(); }};
}

}  // namespace kzero::convert
