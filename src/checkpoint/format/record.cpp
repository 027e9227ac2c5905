#include "checkpoint/format/record.hpp"

#include <cstring>
#include <utility>

namespace kzero::checkpoint {

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
