#include "checkpoint/format/shards_to_store.hpp"

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace kzero::checkpoint {

namespace {

/// Takes the checksums of a shard's arrays, and returns its hash.
std::uint64_t take_checksums(const StateShard& shard, StoredShard& record) {
  std::vector<Digest> digests(shard.arrays.size());
  StateShardHash hash(shard, record.parameter);
  for (BlockReader blocks(shard.staging, shard.arrays); const auto block = blocks.next();) {
    for (std::size_t a = 0; a < digests.size(); ++a)
      digests[a].update(std::as_bytes(block->arrays[a]));
    hash.add(*block);
  }
  for (const Digest& digest : digests) record.checksums.push_back(digest.value());
  return hash.value();
}

}  // namespace

Prepared prepare(std::span<const StateShard> mine, const Positions& positions,
                 const param::StateArrays& arrays) {
  Prepared prepared;
  for (const StateShard& shard : mine) {
    if (shard.ranges.empty()) continue;
    const auto found = positions.find(shard.parameter);
    KZERO_REQUIRE(found != positions.end(), ExitCode::other,
                  "internal error: {} is saved but not in the table of parameters",
                  shard.parameter);
    StoredShard record{.parameter = found->second, .runs = compact(shard.ranges)};
    const Index elements = elements_of(shard.ranges);
    KZERO_REQUIRE(has_arrays(shard, arrays), ExitCode::other,
                  "internal error: {} is saved with other state arrays than its manifest names",
                  shard.parameter);
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      const auto& [name, values] = shard.arrays[a];
      const bool has_none = values.empty() && arrays[a].extent != param::Extent::all;
      KZERO_REQUIRE(has_none || std::ssize(values) == elements, ExitCode::other,
                    "internal error: {} of {} has {} values for ranges of {} elements", name,
                    shard.parameter, values.size(), elements);
      record.offsets.push_back(has_none ? no_offset : 0);
    }
    prepared.parameter_hash += take_checksums(shard, record);
    prepared.shards.push_back(&shard);
    prepared.records.push_back(std::move(record));
  }
  return prepared;
}

void describe_parameter(storage::Hdf5File& file, const Parameter& parameter,
                        std::span<const StoredShard* const> parts) {
  std::vector<Index> runs, elements;
  for (const StoredShard* part : parts) {
    elements.push_back(elements_of(part->runs));
    for (const Run& r : part->runs) runs.insert(runs.end(), {r.begin, r.count, r.stride, r.repeat});
  }
  file.create_group(parameter.name);
  file.set_attribute(parameter.name, "shape", parameter.shape);
  file.set_attribute(parameter.name, "part_elements", elements);
  file.write(parameter.name + "/runs", std::span<const Index>(runs),
             {static_cast<Index>(runs.size() / 4), 4});
}

void describe_state(storage::Hdf5File& file, const std::string& dataset, std::size_t array,
                    std::span<const StoredShard* const> parts) {
  std::vector<std::uint64_t> checksums;
  for (const StoredShard* part : parts) checksums.push_back(part->checksums[array]);
  file.set_attribute(dataset, "xxh3_64", checksums);
}

}  // namespace kzero::checkpoint
