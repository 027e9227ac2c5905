#include "checkpoint/format/shard_file.hpp"

#include "base/error.hpp"
#include "checkpoint/format/shards_to_store.hpp"
#include "checkpoint/format/verify.hpp"
#include "storage/files.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

/// Writes a shard's values to the offsets of its record. Arrays that it lacks have no blocks.
void write_values(const storage::OutputFile& file, const StateShard& shard,
                  const StoredShard& record) {
  for (std::size_t a = 0; a < shard.arrays.size(); ++a) {
    const std::span<const StateValues> array(&shard.arrays[a], 1);
    for (BlockReader blocks(shard.staging, array); const auto block = blocks.next();) {
      file.write(record.offsets[a] + block->begin * value_bytes,
                 std::as_bytes(block->arrays.front()));
    }
  }
}

/// Collects and writes shard by shard. The disk writes the previous shards while this one's
/// checksums are computed.
LocalPart collect_and_write(const storage::OutputFile& file, const fs::path& path,
                            const Manifest& manifest, std::span<const StateShard> mine) {
  LocalPart part{{.file = path.filename().string()}};
  const Positions positions = positions_of(manifest.parameters);
  storage::Hdf5File structure = storage::Hdf5File::create(path, 0);
  Index unsynced = 0;
  for (const StateShard& shard : mine) {
    if (shard.ranges.empty()) continue;
    if (unsynced >= storage::sync_bytes) {
      storage::begin_sync(path);
      unsynced = 0;
    }
    auto [record, hash] = prepare(shard, positions, manifest.state_arrays);
    StoredShard* const parts[] = {&record};
    create_datasets(structure, manifest.parameters[record.parameter], manifest.state_arrays, parts);
    write_values(file, shard, record);
    unsynced += elements_of(record.runs) * param::bytes_per_element(manifest.state_arrays);
    part.parameter_hash += hash;
    part.shard_file.shards.push_back(std::move(record));
  }
  structure.write_to(file);
  return part;
}

}  // namespace

std::string shard_file_name(Index number) { return fmt::format("shard_{:05}.h5", number); }

void verify_written(const InputFile& written, const fs::path& path, const Manifest& manifest,
                    std::span<const StoredShard> own) {
  storage::begin_sync(path);
  require_undamaged(written, path, manifest, own);
}

void describe_file(const InputFile& written, ShardFile& shard_file) {
  shard_file.bytes = written.bytes();
  shard_file.structure = structure_of(written, shard_file);
}

LocalPart write_shard_file(const fs::path& folder, const std::string& name,
                           const Manifest& manifest, std::span<const StateShard> mine) {
  const fs::path path = folder / name;
  storage::OutputFile file(path);
  LocalPart part = collect_and_write(file, path, manifest, mine);  // a collect, b write
  const InputFile written(path);                                   // c verify
  verify_written(written, path, manifest, part.shard_file.shards);
  describe_file(written, part.shard_file);
  file.sync();  // d sync
  file.close();
  return part;
}

}  // namespace kzero::checkpoint
