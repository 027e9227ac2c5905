#include "checkpoint/pieces_to_store.hpp"

#include "base/checksum.hpp"
#include "base/error.hpp"

namespace kzero::checkpoint {

Prepared prepare(std::span<const Piece> mine, const Positions& positions) {
  Prepared prepared;
  for (const Piece& piece : mine) {
    if (piece.ranges.empty()) continue;
    const auto found = positions.find(piece.parameter);
    KZERO_REQUIRE(found != positions.end(), ExitCode::other,
                  "internal error: {} is saved but not in the table of parameters",
                  piece.parameter);
    StoredPiece record{.parameter = found->second, .runs = compact(piece.ranges)};
    const Index elements = elements_of(piece.ranges);
    const auto states = piece.states();
    for (std::size_t s = 0; s < states.size(); ++s) {
      KZERO_REQUIRE(static_cast<Index>(states[s].size()) == elements, ExitCode::other,
                    "internal error: {} of {} has {} values for ranges of {} elements",
                    state_names[s], piece.parameter, states[s].size(), elements);
      record.checksums[s] = checksum(std::as_bytes(states[s]));
    }
    prepared.parameter_hash += hash_of(piece, found->second);
    prepared.pieces.push_back(&piece);
    prepared.records.push_back(std::move(record));
  }
  return prepared;
}

void describe_parameter(Hdf5File& file, const Parameter& parameter,
                        std::span<const StoredPiece* const> parts) {
  std::vector<Index> runs, elements;
  for (const StoredPiece* part : parts) {
    elements.push_back(elements_of(part->runs));
    for (const Run& r : part->runs) runs.insert(runs.end(), {r.begin, r.count, r.stride, r.repeat});
  }
  file.create_group(parameter.name);
  file.set_attribute(parameter.name, "shape", parameter.shape);
  file.set_attribute(parameter.name, "part_elements", elements);
  file.write(parameter.name + "/runs", std::span<const Index>(runs),
             {static_cast<Index>(runs.size() / 4), 4});
}

void describe_state(Hdf5File& file, const std::string& dataset, std::size_t state,
                    std::span<const StoredPiece* const> parts) {
  std::vector<std::uint64_t> checksums;
  for (const StoredPiece* part : parts) checksums.push_back(part->checksums[state]);
  file.set_attribute(dataset, "xxh3_64", checksums);
}

}  // namespace kzero::checkpoint
