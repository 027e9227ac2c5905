// A manifest with a good checksum and good HDF5 whose numbers are anything: the input replaces the
// values of its tables, one after the other. Accepted manifests are verified and read.
#include <algorithm>

#include "checkpoint/format/verify.hpp"
#include "checkpoint/reader.hpp"
#include "fuzz.hpp"
#include "saved.hpp"

namespace {

using namespace kzero;

struct Original {
  fuzz::SavedCheckpoint saved;
  std::string bytes = fuzz::manifest_bytes(saved);
  std::vector<Region> tables = fuzz::tables_of(bytes);
};

/// As the search of a restart that wants small parameters as a whole.
void verify_values(const checkpoint::Found& found) {
  std::vector<float> values(4096);
  std::vector<checkpoint::StateShard> wanted;
  for (const checkpoint::Parameter& parameter : found.manifest.parameters) {
    const Index count = parameter.elements();
    if (count > std::ssize(values)) continue;
    const auto room = std::span(values).first(count);
    wanted.push_back(fuzz::shard_of(parameter.name, {{0, count}}, room));
  }
  checkpoint::WantedShards wanted_shards(wanted, found.manifest);
  for (const auto& shard_file : found.manifest.shard_files) {
    for (const Index part : {0, 1, 2}) {
      checkpoint::verify_shard(found.path, found.manifest, shard_file, {part, 3}, wanted_shards);
    }
  }
}

/// As `convert` and a restart do: from files of the right size.
void read_values(const checkpoint::Found& found) {
  for (const checkpoint::ShardFile& shard_file : found.manifest.shard_files) {
    if (static_cast<Index>(std::filesystem::file_size(found.path / shard_file.file)) !=
        shard_file.bytes)
      return;
  }
  std::vector<float> values(64);
  for (const checkpoint::Parameter& parameter : found.manifest.parameters) {
    const Index count = std::min<Index>(parameter.elements(), values.size());
    for (const Index begin : {Index{0}, parameter.elements() - count}) {
      const auto room = std::span(values).first(count);
      const auto shard = fuzz::shard_of(parameter.name, {{begin, count}}, room);
      fuzz::accepts([&] { checkpoint::read(found, std::span(&shard, 1)); });
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Original original;
  std::string bytes = original.bytes;
  for (const Region& table : original.tables) {
    const auto count = std::min(static_cast<std::size_t>(table.bytes), size);
    std::memcpy(bytes.data() + table.offset, data, count);
    data += count;
    size -= count;
  }
  fuzz::sign(bytes);
  checkpoint::Found found{original.saved.path(), {}};
  if (!fuzz::accepts([&] { found.manifest = checkpoint::parse_manifest(bytes, "fuzz"); })) return 0;
  verify_values(found);
  read_values(found);
  return 0;
}
