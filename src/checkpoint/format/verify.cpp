#include "checkpoint/format/verify.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "checkpoint/format/parameter_hash.hpp"
#include "storage/files.hpp"

namespace kzero::checkpoint {

namespace {

/// Number of elements of one array per block, so that all arrays of a shard stay in the
/// second-level cache.
constexpr Index cached_elements = Index{1} << 16;

Index bytes_of(const StoredShard& shard) { return elements_of(shard.runs) * value_bytes; }

std::vector<Region> regions_of(const ShardFile& shard_file) {
  std::vector<Region> regions;
  for (const StoredShard& shard : shard_file.shards) {
    for (const Index offset : shard.offsets) {
      if (offset != no_offset) regions.push_back({offset, bytes_of(shard)});
    }
  }
  return regions;
}

using Checksums = std::vector<std::uint64_t>;  // one per state array

Checksums checksums_of(const InputFile& file, const StoredShard& stored) {
  Checksums checksums;
  for (const Index offset : stored.offsets) {
    const Region region{offset, bytes_of(stored)};
    checksums.push_back(file.checksum(std::span(&region, offset == no_offset ? 0 : 1)));
  }
  return checksums;
}

/// Reads elements [begin, begin + block's size) of one of a shard's arrays.
void read_block(const InputFile& file, Index offset, Index begin, std::span<float> block,
                Digest& digest) {
  const auto bytes = std::as_writable_bytes(block);
  digest.update(bytes.first(file.read(offset + begin * value_bytes, bytes)));
}

/// Fills a wanted shard, one block of all arrays at a time. The block's checksums and hash are
/// computed while it is in cache and the kernel reads ahead.
Checksums fill(const InputFile& file, const StoredShard& stored, const StateShard& target,
               WantedShards& wanted_shards) {
  std::vector<Digest> digests(stored.offsets.size());
  StateShardHash hash(target, stored.parameter);
  BlockWriter blocks(target.staging, target.arrays, cached_elements);
  while (const auto block = blocks.next()) {
    for (std::size_t a = 0; a < digests.size(); ++a) {
      if (stored.offsets[a] == no_offset) continue;
      read_block(file, stored.offsets[a], block->begin, block->arrays[a], digests[a]);
    }
    hash.add(*block);
  }
  wanted_shards.put({target, hash.value()});
  Checksums checksums;
  for (const Digest& digest : digests) checksums.push_back(digest.value());
  return checksums;
}

/// The slice's shards. They are consecutive, so that a slice is read from start to end.
std::span<const StoredShard> shards_of(const ShardFile& shard_file, Slice slice) {
  const std::span<const StoredShard> all(shard_file.shards);
  Index total = 0;
  for (const StoredShard& shard : all) total += bytes_of(shard);
  std::size_t begin = all.size(), end = 0;
  Index before = 0;
  for (std::size_t i = 0; i < all.size(); before += bytes_of(all[i++])) {
    if (before * slice.parts / std::max<Index>(total, 1) != slice.part) continue;
    begin = std::min(begin, i);
    end = i + 1;
  }
  return begin < end ? all.subspan(begin, end - begin) : all.first(0);
}

}  // namespace

std::uint64_t structure_of(const InputFile& file, const ShardFile& shard_file) {
  return file.checksum(storage::gaps_between(regions_of(shard_file), file.bytes()));
}

std::vector<std::string> damage_of(const InputFile& file, const std::filesystem::path& path,
                                   const Manifest& manifest, std::span<const StoredShard> shards,
                                   WantedShards& wanted_shards) {
  std::vector<std::string> problems;
  for (const StoredShard& shard : shards) {
    const StateShard* target = wanted_shards.take(shard);
    const Checksums found =
        target == nullptr ? checksums_of(file, shard) : fill(file, shard, *target, wanted_shards);
    for (std::size_t a = 0; a < found.size(); ++a) {
      if (found[a] == shard.checksums[a]) continue;
      problems.push_back(fmt::format(
          "{}: dataset {}/{} is damaged (checksum {}, its manifest says {})", path.string(),
          manifest.parameters[shard.parameter].name, manifest.state_arrays[a].name,
          format_checksum(found[a]), format_checksum(shard.checksums[a])));
    }
  }
  return problems;
}

void require_undamaged(const InputFile& file, const std::filesystem::path& path,
                       const Manifest& manifest, std::span<const StoredShard> shards) {
  WantedShards none;
  const auto problems = damage_of(file, path, manifest, shards, none);
  KZERO_REQUIRE(problems.empty(), ExitCode::files, "{} (found when reading back what was written)",
                problems.front());
}

std::vector<std::string> verify_shard(const std::filesystem::path& folder, const Manifest& manifest,
                                      const ShardFile& shard_file, Slice slice,
                                      WantedShards& wanted_shards) {
  const auto path = folder / shard_file.file;
  try {
    const InputFile file(path);
    auto problems = damage_of(file, path, manifest, shards_of(shard_file, slice), wanted_shards);
    if (slice.part > 0) return problems;
    if (file.bytes() != shard_file.bytes) {
      problems.insert(problems.begin(), fmt::format("{}: has {} bytes, its manifest says {}",
                                                    path.string(), file.bytes(), shard_file.bytes));
    } else if (structure_of(file, shard_file) != shard_file.structure) {
      problems.push_back(fmt::format(
          "{}: the structure between its datasets is damaged (its checksum is not its manifest's)",
          path.string()));
    }
    return problems;
  } catch (const Error& error) {
    return {error.what()};
  }
}

}  // namespace kzero::checkpoint
