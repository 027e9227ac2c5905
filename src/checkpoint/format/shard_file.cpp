#include "checkpoint/format/shard_file.hpp"

#include "base/error.hpp"
#include "checkpoint/format/shards_to_store.hpp"
#include "checkpoint/format/verify.hpp"
#include "storage/files.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

void write_state(storage::Hdf5File& structure, const storage::OutputFile& file,
                 const StateShard& shard, const Parameter& parameter, StoredShard& record) {
  const std::array<const StoredShard*, 1> parts{&record};
  describe_parameter(structure, parameter, parts);
  for (std::size_t a = 0; a < shard.arrays.size(); ++a) {
    if (record.offsets[a] == no_offset) continue;
    const std::string dataset = shard.parameter + "/" + shard.arrays[a].name;
    structure.reserve(dataset, elements_of(record.runs));
    describe_state(structure, dataset, a, parts);
    record.offsets[a] = structure.offset_of(dataset);
    const std::span<const StateValues> array(&shard.arrays[a], 1);
    for (BlockReader blocks(shard.staging, array); const auto block = blocks.next();) {
      file.write(record.offsets[a] + block->begin * static_cast<Index>(sizeof(float)),
                 std::as_bytes(block->arrays.front()));
    }
  }
}

/// Steps 1 and 2, shard by shard: the disk writes the last ones while this one's checksums are
/// taken.
LocalPart collect_and_write(const storage::OutputFile& file, const fs::path& path,
                            const Manifest& manifest, std::span<const StateShard> mine) {
  LocalPart part{{.file = path.filename().string()}};
  const Positions positions = positions_of(manifest.parameters);
  storage::Hdf5File structure = storage::Hdf5File::create(path, 0);
  Index unsynced = 0;
  for (const StateShard& shard : mine) {
    if (unsynced >= storage::sync_bytes) {
      storage::begin_sync(path);
      unsynced = 0;
    }
    Prepared prepared = prepare(std::span(&shard, 1), positions, manifest.state_arrays);
    part.parameter_hash += prepared.parameter_hash;
    for (StoredShard& record : prepared.records) {
      write_state(structure, file, shard, manifest.parameters[record.parameter], record);
      unsynced += elements_of(record.runs) * param::bytes_per_element(manifest.state_arrays);
      part.shard_file.shards.push_back(std::move(record));
    }
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
  LocalPart part = collect_and_write(file, path, manifest, mine);  // 1 collect, 2 write
  const InputFile written(path);                                   // 3 verify
  verify_written(written, path, manifest, part.shard_file.shards);
  describe_file(written, part.shard_file);
  file.sync();  // 4 sync
  file.close();
  return part;
}

}  // namespace kzero::checkpoint
