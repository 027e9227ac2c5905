#include "convert/import.hpp"

#include <algorithm>
#include <deque>
#include <iostream>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "checkpoint/folder/lock.hpp"
#include "checkpoint/folder/retention.hpp"
#include "checkpoint/writer.hpp"
#include "convert/computed_shard.hpp"
#include "convert/weights.hpp"
#include "grid/agreement.hpp"

namespace kzero::convert {

namespace {

using checkpoint::Parameter;
using checkpoint::Range;
using checkpoint::StateShard;

/// Locks a folder that contains no checkpoint yet, on the root. Collective.
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
                  "{}: is a checkpoint already, and training would resume from the newest; choose "
                  "a folder without checkpoints, or move them away",
                  printable(others.front().string()));
  });
  return lock;
}

/// Writes the first checkpoint of a folder. Collective.
void write_first(const grid::Group& group, const std::filesystem::path& folder,
                 const checkpoint::Manifest& manifest, std::span<const StateShard> shards,
                 const Origin& origin) {
  const auto lock = take_empty(group, folder);
  grid::collectively(group, [&] {
    if (group.is_root()) checkpoint::update_origin(folder, origin);
  });
  checkpoint::write(group, folder, manifest, shards, 0);
}

/// All arrays except the master weights start from zero.
void add_zeros(StateShard& shard, const param::ParamSpec& p, const param::StateArrays& arrays,
               std::span<float> zeros) {
  const std::span<float> master = shard.values(param::master_weights);
  shard.arrays.clear();
  for (const param::StateArray& array : arrays) {
    const bool is_master = array.name == param::master_weights;
    const std::size_t count = array.extends_to(p) ? master.size() : 0;
    shard.arrays.push_back({array.name, is_master ? master : zeros.first(count)});
  }
}

const param::ParamSpec& spec_of(const std::string& name, const param::Table& table) {
  for (const param::UnitSpec& unit : table) {
    const auto found = std::ranges::find(unit.params, name, &param::ParamSpec::name);
    if (found != unit.params.end()) return *found;
  }
  fail(ExitCode::other, "internal error: {} is not in the table of parameters", name);
}

}  // namespace

void import_weights(const grid::Group& group, const ExportSource& source, const param::Table& table,
                    const std::filesystem::path& folder, checkpoint::Manifest manifest,
                    const Origin& origin) {
  manifest.parameters = checkpoint::parameters_of(table);
  std::vector<std::vector<float>> memory;
  std::vector<float> zeros;
  std::vector<StateShard> shards;
  grid::collectively(group, [&] {
    for (std::size_t p = group.rank(); p < manifest.parameters.size(); p += group.size()) {
      const Parameter& parameter = manifest.parameters[p];
      const Range all{0, parameter.elements()};
      auto& values = memory.emplace_back(all.count);
      source.read(parameter, all, values);
      zeros.resize(std::max(zeros.size(), values.size()));
      shards.push_back({parameter.name, {all}, {{param::master_weights, values}}});
    }
    source.finish();
  });
  for (StateShard& shard : shards)
    add_zeros(shard, spec_of(shard.parameter, table), manifest.state_arrays, zeros);
  write_first(group, folder, manifest, shards, origin);
}

std::string import_weights(const grid::Group& group, const std::filesystem::path& path,
                           const param::Table& table, const std::filesystem::path& folder,
                           checkpoint::Manifest manifest, const Origin& origin) {
  std::optional<Weights> weights;
  grid::collectively(group, [&] { weights.emplace(path, manifest.model, table); });
  const ExportSource source = file_weights(*weights, path.string(), manifest.model, table);
  import_weights(group, source, table, folder, std::move(manifest), origin);
  return weights->note();
}

void write_weights(const grid::Group& group, const ExportSource& source,
                   const std::filesystem::path& folder, checkpoint::Manifest manifest,
                   const Origin& origin) {
  manifest.parameters = source.parameters;
  manifest.state_arrays = {{param::master_weights}};
  Index largest = 0;
  for (const Parameter& parameter : source.parameters)
    largest = std::max(largest, parameter.elements());
  ComputedMemory memory(largest);
  std::deque<ComputedShard> computed;
  std::vector<StateShard> shards;
  for (std::size_t p = group.rank(); p < source.parameters.size(); p += group.size())
    shards.push_back(computed.emplace_back(memory, source, source.parameters[p]).shard());
  write_first(group, folder, manifest, shards, origin);
}

}  // namespace kzero::convert
