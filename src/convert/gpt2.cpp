#include "convert/gpt2.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "checkpoint/lock.hpp"
#include "checkpoint/retention.hpp"
#include "checkpoint/writer.hpp"
#include "convert/finite.hpp"
#include "convert/gpt2_config.hpp"
#include "convert/weight_files.hpp"
#include "grid/agreement.hpp"

namespace kzero::convert {

namespace {

using checkpoint::Parameter;
using checkpoint::Range;
using checkpoint::StateShard;

constexpr std::string_view prefix = name_prefix;
constexpr const char* embedding = "wte.weight";
constexpr Index chunk_elements = Index{1} << 20;
constexpr std::size_t most_problems = 20;

std::string plain(const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

/// Constants that some programs store beside the weights.
bool is_mask(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

/// Describes a mismatch between one tensor and one parameter; empty if it fits.
std::string misfit(const Parameter& parameter, const Tensor* tensor) {
  const std::string wanted =
      fmt::format("{} [{}]", parameter.name, fmt::join(parameter.shape, ", "));
  if (tensor == nullptr) {
    return wanted + " is missing" +
           (parameter.name == head_name ? " (the file's embeddings are tied: model.tied_embeddings)"
                                        : "");
  }
  if (tensor->shape != parameter.shape) {
    return fmt::format("{} has shape [{}] in the file", wanted, fmt::join(tensor->shape, ", "));
  }
  if (tensor->dtype != "F32" && tensor->dtype != "F16" && tensor->dtype != "BF16") {
    return fmt::format("{} is of dtype {}; weights have to be F32, F16 or BF16", wanted,
                       tensor->dtype);
  }
  return "";
}

/// The right to write into a folder that holds no checkpoint yet; on the root. Collective.
std::unique_ptr<checkpoint::FolderLock> take_empty(const grid::Group& group,
                                                   const std::filesystem::path& folder) {
  std::unique_ptr<checkpoint::FolderLock> lock;
  grid::collectively(group, [&] {
    if (!group.is_root()) return;
    checkpoint::require_folder_of_checkpoints(folder);
    lock = std::make_unique<checkpoint::FolderLock>(folder, [](const std::string& text) {
      std::cerr << "kzero: " << printable_lines(text) << std::endl;
    });
    const auto others = checkpoint::candidates(folder);
    KZERO_REQUIRE(others.empty(), ExitCode::usage,
                  "{}: is a checkpoint already, and a training would go on from the newest; choose "
                  "a folder without checkpoints, or move them away",
                  printable(others.front().string()));
  });
  return lock;
}

void throw_if_any(const std::filesystem::path& path, std::vector<std::string> problems) {
  const std::size_t hidden = problems.size() - std::min(problems.size(), most_problems);
  problems.resize(problems.size() - hidden);
  if (hidden > 0) problems.push_back(fmt::format("and {} more", hidden));
  KZERO_REQUIRE(problems.empty(), ExitCode::files, "{}: does not fit the model:\n  {}",
                printable(path.string()), fmt::join(problems, "\n  "));
}

}  // namespace

Gpt2Weights::Gpt2Weights(const std::filesystem::path& path, const checkpoint::ModelShape& model,
                         const param::Table& table) {
  const WeightFiles found = find_weight_files(path);
  for (const auto& file : found.files) files_.emplace_back(file);
  if (found.config) {
    require_same_function(*found.config, model);
  } else {
    note_ = fmt::format(
        "no {} beside {}: the number of heads, the activation, the scale of attention and the "
        "epsilon of layer normalisation are the deck's, unchecked",
        config_name, printable(path.string()));
  }
  std::vector<std::string> problems = offer(found.placed);
  const std::vector<std::string> more = match(table);
  problems.insert(problems.end(), more.begin(), more.end());
  throw_if_any(path, problems);
}

std::vector<std::string> Gpt2Weights::offer(
    const std::map<std::string, std::filesystem::path>& placed) {
  std::vector<std::string> problems;
  for (const SafetensorsFile& file : files_) {
    for (const Tensor& tensor : file.tensors()) {
      const std::string name = plain(tensor.name);
      if (is_mask(name)) continue;
      if (!offered_.emplace(name, Stored{&file, &tensor}).second)
        problems.push_back(printable(name) + " is there twice");
    }
  }
  for (const auto& [name, path] : placed) {
    const auto file = std::ranges::find(files_, path, &SafetensorsFile::path);
    if (file->find(name) == nullptr) {
      problems.push_back(fmt::format("{} is not in {}, where the index places it", printable(name),
                                     printable(path.filename().string())));
    }
  }
  return problems;
}

std::vector<std::string> Gpt2Weights::match(const param::Table& table) {
  std::vector<std::string> problems;
  std::set<std::string> known;
  for (const Parameter& parameter : checkpoint::parameters_of(table)) {
    known.insert(parameter.name);
    const auto found = offered_.find(parameter.name);
    const Tensor* tensor = found == offered_.end() ? nullptr : found->second.tensor;
    const std::string problem = misfit(parameter, tensor);
    if (!problem.empty()) problems.push_back(problem);
  }
  for (const auto& [name, stored] : offered_) {
    if (known.contains(name)) continue;
    if (name != head_name || !problems.empty()) {
      problems.push_back(printable(name) + " is not a parameter of this model");
    } else if (!same_values(stored, offered_.at(embedding))) {
      problems.push_back(
          fmt::format("{} differs from {} (model.tied_embeddings is for files "
                      "where they are the same)",
                      head_name, embedding));
    }
  }
  return problems;
}

bool Gpt2Weights::same_values(const Stored& a, const Stored& b) {
  if (a.tensor->shape != b.tensor->shape) return false;
  std::vector<float> x;
  std::vector<float> y;
  for (Index at = 0; at < a.tensor->elements(); at += chunk_elements) {
    const Range range{at, std::min(chunk_elements, a.tensor->elements() - at)};
    x.resize(range.count);
    y.resize(range.count);
    a.file->read(*a.tensor, range, x);
    b.file->read(*b.tensor, range, y);
    if (x != y) return false;
  }
  return true;
}

void Gpt2Weights::load_range(const std::string& parameter, Range range,
                             std::span<float> values) const {
  const Stored& stored = offered_.at(parameter);
  stored.file->read(*stored.tensor, range, values);
  require_finite(stored.file->path().string(), {stored.tensor->name, stored.tensor->shape}, range,
                 values);
}

namespace {

/// Every array but the master weights starts from zeros.
void add_zeros(StateShard& shard, const param::StateArrays& arrays, std::span<float> zeros) {
  const std::span<float> master = shard.values(param::master_weights);
  shard.arrays.clear();
  for (const param::StateArray& array : arrays) {
    const bool is_master = array.name == param::master_weights;
    shard.arrays.push_back({array.name, is_master ? master : zeros.first(master.size())});
  }
}

}  // namespace

std::string import_gpt2(const grid::Group& group, const std::filesystem::path& path,
                        const param::Table& table, const std::filesystem::path& folder,
                        checkpoint::Manifest manifest) {
  manifest.parameters = checkpoint::parameters_of(table);
  std::vector<std::vector<float>> memory;
  std::vector<float> zeros;
  std::vector<StateShard> shards;
  std::string note;
  grid::collectively(group, [&] {
    const Gpt2Weights weights(path, manifest.model, table);
    note = weights.note();
    for (std::size_t p = group.rank(); p < manifest.parameters.size(); p += group.size()) {
      const Parameter& parameter = manifest.parameters[p];
      const Range all{0, parameter.elements()};
      auto& values = memory.emplace_back(all.count);
      weights.load_range(parameter.name, all, values);
      zeros.resize(std::max(zeros.size(), values.size()));
      shards.push_back({parameter.name, {all}, {{param::master_weights, values}}});
    }
  });
  for (StateShard& shard : shards) add_zeros(shard, manifest.state_arrays, zeros);
  const auto lock = take_empty(group, folder);
  checkpoint::write(group, folder, manifest, shards, 0);
  return note;
}

}  // namespace kzero::convert
