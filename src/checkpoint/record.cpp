#include "checkpoint/record.hpp"

#include <cstring>
#include <utility>

namespace kzero::checkpoint {

std::string pack(const Shard& shard) {
  std::vector<Index> words{shard.bytes, static_cast<Index>(shard.structure)};
  for (const StoredPiece& piece : shard.pieces) {
    words.insert(words.end(), {piece.parameter, static_cast<Index>(piece.runs.size())});
    for (const Run& r : piece.runs) {
      words.insert(words.end(), {r.begin, r.count, r.stride, r.repeat});
    }
    for (const auto digest : piece.checksums) words.push_back(static_cast<Index>(digest));
    words.insert(words.end(), piece.offsets.begin(), piece.offsets.end());
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(Index)};
}

Shard unpack(const std::string& bytes, std::string file) {
  std::vector<Index> words(bytes.size() / sizeof(Index));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  auto word = words.begin();
  Shard shard{.file = std::move(file), .bytes = *word++};
  shard.structure = static_cast<std::uint64_t>(*word++);
  while (word != words.end()) {
    StoredPiece piece{.parameter = *word++};
    piece.runs.resize(*word++);
    for (Run& r : piece.runs) {
      for (Index* field : {&r.begin, &r.count, &r.stride, &r.repeat}) *field = *word++;
    }
    for (auto& digest : piece.checksums) digest = static_cast<std::uint64_t>(*word++);
    for (auto& offset : piece.offsets) offset = *word++;
    shard.pieces.push_back(std::move(piece));
  }
  return shard;
}

}  // namespace kzero::checkpoint
