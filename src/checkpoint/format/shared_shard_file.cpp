#include <algorithm>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "checkpoint/format/shard_file.hpp"
#include "checkpoint/format/shards_to_store.hpp"
#include "checkpoint/format/shared_file.hpp"
#include "checkpoint/format/verify.hpp"
#include "grid/agreement.hpp"
#include "storage/files.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

/// Most values of one rank in one call, because MPI libraries count in 32 bits.
constexpr Index max_write_elements = Index{1} << 27;

/// Returns the number of values per call for which every rank has memory. Collective over `group`.
Index elements_of_a_call(const grid::Group& group, std::span<const StateShard> mine) {
  Index elements = max_write_elements;
  for (const StateShard& shard : mine) elements = block_elements(shard.staging, 1, elements);
  return group.min(elements);
}

/// Creates the complete file without its values, and assigns every shard its offset.
void create_file(const fs::path& path, const Manifest& manifest, std::vector<StoredShard>& shards) {
  std::map<Index, std::vector<StoredShard*>> parts;
  for (StoredShard& shard : shards) parts[shard.parameter].push_back(&shard);
  storage::OutputFile file(path);
  storage::Hdf5File structure = storage::Hdf5File::create(path, 0);
  for (const auto& [position, own] : parts)
    create_datasets(structure, manifest.parameters[position], manifest.state_arrays, own);
  // Allocates in advance: no rank may find the disk full while others wait for it.
  file.allocate(structure.write_to(file));
  file.close();
}

/// Returns the first rank's record of the file, with every rank's shards in rank order.
ShardFile agree_on_layout(const grid::Group& group, const fs::path& path, const Manifest& manifest,
                          const std::vector<StoredShard>& mine) {
  const std::string name = path.filename().string();
  ShardFile shard_file{.file = name, .shards = mine};
  const auto all = group.gather(pack(shard_file));
  grid::collectively(group, [&] {
    if (!group.is_root()) return;
    shard_file.shards.clear();
    for (const std::string& one : all) {
      for (StoredShard& shard : unpack(one, name).shards)
        shard_file.shards.push_back(std::move(shard));
    }
    create_file(path, manifest, shard_file.shards);
  });
  return unpack(group.broadcast(pack(shard_file)), name);
}

/// The shards of one parameter, and this rank's own if it has one.
struct Parts {
  Index rounds = 0;  // calls that the longest part needs
  const StoredShard* own = nullptr;
  const StateShard* shard = nullptr;
};

/// Groups the shards by parameter, so that the file is written from start to end. `first` is the
/// position of this rank's first shard in the shard file. A call writes `call` elements.
std::map<Index, Parts> parts_of(const ShardFile& shard_file, std::size_t first,
                                const std::vector<const StateShard*>& mine, Index call) {
  std::map<Index, Parts> all;
  for (std::size_t i = 0; i < shard_file.shards.size(); ++i) {
    const StoredShard& stored = shard_file.shards[i];
    Parts& parts = all[stored.parameter];
    parts.rounds = std::max(parts.rounds, ceil_div(elements_of(stored.runs), call));
    if (i < first || i >= first + mine.size()) continue;
    parts.own = &stored;
    parts.shard = mine[i - first];
  }
  return all;
}

Index bytes_of(const Parts& parts, const param::StateArrays& arrays) {
  const Index elements = parts.own == nullptr ? 0 : elements_of(parts.own->runs);
  return elements * param::bytes_per_element(arrays);
}

/// Every rank makes the same calls, each of at most `call` elements. Collective over the file's
/// group.
void write_values(SharedFile& file, const Parts& parts, std::size_t arrays, Index call) {
  for (std::size_t a = 0; a < arrays; ++a) {
    std::optional<BlockReader> blocks;
    if (parts.shard != nullptr)
      blocks.emplace(parts.shard->staging, std::span(&parts.shard->arrays[a], 1), call);
    for (Index round = 0; round < parts.rounds; ++round) {
      const auto block = blocks ? blocks->next() : std::nullopt;
      if (block) {
        file.write(parts.own->offsets[a] + block->begin * value_bytes, block->arrays.front());
      } else {
        file.write(0, {});
      }
    }
  }
}

/// Writes every rank's values, parameter by parameter. Collective over `group`.
void write_all(const grid::Group& group, const fs::path& path, const Manifest& manifest,
               const std::map<Index, Parts>& all, Index call) {
  SharedFile file(group, path);
  Index unsynced = 0;
  for (const auto& [position, parts] : all) {
    write_values(file, parts, manifest.state_arrays.size(), call);
    unsynced += bytes_of(parts, manifest.state_arrays);
    if (unsynced < storage::sync_bytes) continue;
    storage::begin_sync(path);
    unsynced = 0;
  }
  file.close();
}

/// Counts the shards of the preceding ranks in the file. Collective over `group`.
std::size_t shards_before(const grid::Group& group, std::size_t own) {
  std::size_t first = 0;
  const auto counts = group.all_gather(static_cast<double>(own));
  for (int r = 0; r < group.rank(); ++r) first += static_cast<std::size_t>(counts[r]);
  return first;
}

}  // namespace

LocalPart write_shared_shard_file(const grid::Group& group, const fs::path& folder,
                                  const std::string& name, const Manifest& manifest,
                                  std::span<const StateShard> mine) {
  const fs::path path = folder / name;
  LocalPart part;
  std::vector<const StateShard*> shards;  // non-empty ones, and their records
  std::vector<StoredShard> records;
  // a collect
  grid::collectively(group, [&] {
    const Positions positions = positions_of(manifest.parameters);
    for (const StateShard& shard : mine) {
      if (shard.ranges.empty()) continue;
      auto [record, hash] = prepare(shard, positions, manifest.state_arrays);
      part.parameter_hash += hash;
      shards.push_back(&shard);
      records.push_back(std::move(record));
    }
  });
  // b write
  part.shard_file = agree_on_layout(group, path, manifest, records);
  const std::size_t first = shards_before(group, records.size());
  const Index call = elements_of_a_call(group, mine);
  write_all(group, path, manifest, parts_of(part.shard_file, first, shards, call), call);
  grid::collectively(group, [&] {
    // c verify
    const InputFile written(path);
    verify_written(written, path, manifest,
                   std::span(part.shard_file.shards).subspan(first, records.size()));
    if (group.is_root()) describe_file(written, part.shard_file);
    // d sync
    storage::sync_to_disk(path);
  });
  if (!group.is_root()) part.shard_file = {};
  return part;
}

}  // namespace kzero::checkpoint
