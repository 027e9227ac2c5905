#include "checkpoint/shard_file.hpp"

#include "base/error.hpp"
#include "checkpoint/files.hpp"
#include "checkpoint/shards_to_store.hpp"
#include "checkpoint/verify.hpp"

namespace kzero::checkpoint {

namespace {

namespace fs = std::filesystem;

void write_state(Hdf5File& structure, const OutputFile& file, const StateShard& shard,
                 const Parameter& parameter, StoredShard& record) {
  const std::array<const StoredShard*, 1> parts{&record};
  describe_parameter(structure, parameter, parts);
  const auto states = shard.states();
  for (std::size_t s = 0; s < states.size(); ++s) {
    const std::string dataset = shard.parameter + "/" + state_names[s];
    structure.reserve(dataset, elements_of(record.runs));
    describe_state(structure, dataset, s, parts);
    record.offsets[s] = structure.offset_of(dataset);
    file.write(record.offsets[s], std::as_bytes(states[s]));
  }
}

}  // namespace

std::string shard_file_name(Index number) { return fmt::format("shard_{:05}.h5", number); }

LocalPart write_shard_file(const fs::path& folder, const std::string& name,
                           const std::vector<Parameter>& parameters,
                           std::span<const StateShard> mine) {
  LocalPart part{{.file = name}};
  const fs::path path = folder / name;
  const Positions positions = positions_of(parameters);
  OutputFile file(path);
  Hdf5File structure = Hdf5File::create(path, 0);
  Index unsynced = 0;
  for (const StateShard& shard : mine) {
    // The disk writes the last shards while this one's checksums are taken.
    if (unsynced >= sync_bytes) {
      begin_sync(path);
      unsynced = 0;
    }
    Prepared prepared = prepare(std::span(&shard, 1), positions);
    part.parameter_hash += prepared.parameter_hash;
    for (StoredShard& record : prepared.records) {
      write_state(structure, file, shard, parameters[record.parameter], record);
      unsynced += elements_of(record.runs) * state_count * static_cast<Index>(sizeof(float));
      part.shard_file.shards.push_back(std::move(record));
    }
  }
  structure.write_to(file);

  // Read back while the disk is busy with it.
  begin_sync(path);
  const InputFile written(path);
  part.shard_file.bytes = written.bytes();
  part.shard_file.structure = structure_of(written, part.shard_file);
  require_undamaged(written, path, parameters, part.shard_file.shards);
  file.sync();
  file.close();
  return part;
}

}  // namespace kzero::checkpoint
