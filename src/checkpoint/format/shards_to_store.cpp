#include "checkpoint/format/shards_to_store.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace kzero::checkpoint {

namespace {

/// Returns 0 for offsets that are not known yet, and no_offset for arrays that the shard lacks.
std::vector<Index> offsets_of(const StateShard& shard, const param::StateArrays& arrays) {
  const Index elements = elements_of(shard.ranges);
  std::vector<Index> offsets;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const auto& [name, values] = shard.arrays[a];
    const bool has_none = values.empty() && arrays[a].extent != param::Extent::all;
    KZERO_REQUIRE(has_none || std::ssize(values) == elements, ExitCode::other,
                  "internal error: {} of {} has {} values for ranges of {} elements", name,
                  shard.parameter, values.size(), elements);
    offsets.push_back(has_none ? no_offset : 0);
  }
  return offsets;
}

}  // namespace

Prepared prepare(const StateShard& shard, const Positions& positions,
                 const param::StateArrays& arrays) {
  const auto found = positions.find(shard.parameter);
  KZERO_REQUIRE(found != positions.end(), ExitCode::other,
                "internal error: {} is saved but not in the table of parameters", shard.parameter);
  KZERO_REQUIRE(has_arrays(shard, arrays), ExitCode::other,
                "internal error: {} is saved with other state arrays than its manifest names",
                shard.parameter);
  StoredShard record{.parameter = found->second,
                     .runs = compact(shard.ranges),
                     .offsets = offsets_of(shard, arrays)};
  std::vector<Digest> digests(arrays.size());
  StateShardHash hash(shard, record.parameter);
  for (BlockReader blocks(shard.staging, shard.arrays); const auto block = blocks.next();) {
    for (std::size_t a = 0; a < digests.size(); ++a)
      digests[a].update(std::as_bytes(block->arrays[a]));
    hash.add(*block);
  }
  for (const Digest& digest : digests) record.checksums.push_back(digest.value());
  return {std::move(record), hash.value()};
}

void create_datasets(storage::Hdf5File& file, const Parameter& parameter,
                     const param::StateArrays& arrays, std::span<StoredShard* const> parts) {
  std::vector<Index> runs, part_elements;
  Index elements = 0;
  for (const StoredShard* part : parts) {
    part_elements.push_back(elements_of(part->runs));
    elements += part_elements.back();
    for (const Run& r : part->runs) runs.insert(runs.end(), {r.begin, r.count, r.stride, r.repeat});
  }
  file.create_group(parameter.name);
  file.set_attribute(parameter.name, "shape", parameter.shape);
  file.set_attribute(parameter.name, "part_elements", part_elements);
  file.write(parameter.name + "/runs", std::span<const Index>(runs), {std::ssize(runs) / 4, 4});
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    if (parts.front()->offsets[a] == no_offset) continue;
    const std::string dataset = parameter.name + "/" + arrays[a].name;
    std::vector<std::uint64_t> checksums;
    for (const StoredShard* part : parts) checksums.push_back(part->checksums[a]);
    file.reserve(dataset, elements);
    file.set_attribute(dataset, "xxh3_64", checksums);
    Index offset = file.offset_of(dataset);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i]->offsets[a] = offset;
      offset += part_elements[i] * value_bytes;
    }
  }
}

std::string pack(const ShardFile& shard_file) {
  std::vector<Index> words{shard_file.bytes, static_cast<Index>(shard_file.structure)};
  for (const StoredShard& shard : shard_file.shards) {
    words.insert(words.end(), {shard.parameter, static_cast<Index>(shard.runs.size())});
    for (const Run& r : shard.runs) {
      words.insert(words.end(), {r.begin, r.count, r.stride, r.repeat});
    }
    words.push_back(static_cast<Index>(shard.checksums.size()));
    for (const auto digest : shard.checksums) words.push_back(static_cast<Index>(digest));
    words.insert(words.end(), shard.offsets.begin(), shard.offsets.end());
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(Index)};
}

ShardFile unpack(const std::string& bytes, std::string file) {
  std::vector<Index> words(bytes.size() / sizeof(Index));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  auto word = words.begin();
  ShardFile shard_file{.file = std::move(file), .bytes = *word++};
  shard_file.structure = static_cast<std::uint64_t>(*word++);
  while (word != words.end()) {
    StoredShard shard{.parameter = *word++};
    shard.runs.resize(*word++);
    for (Run& r : shard.runs) {
      for (Index* field : {&r.begin, &r.count, &r.stride, &r.repeat}) *field = *word++;
    }
    shard.checksums.resize(*word++);
    shard.offsets.resize(shard.checksums.size());
    for (auto& digest : shard.checksums) digest = static_cast<std::uint64_t>(*word++);
    for (auto& offset : shard.offsets) offset = *word++;
    shard_file.shards.push_back(std::move(shard));
  }
  return shard_file;
}

}  // namespace kzero::checkpoint
