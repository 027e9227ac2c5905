// Packs documents into rows of a sequence's length. The rows are a pure function of the arguments,
// so every rank computes the same. It is independent of files and tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace kzero::data {

/// The rows of an epoch. Row r has the documents at positions [begin[r], begin[r + 1]).
struct Packing {
  std::vector<std::uint32_t> documents{};
  std::vector<std::uint32_t> begin{0};

  Index rows() const { return static_cast<Index>(begin.size()) - 1; }
  std::span<const std::uint32_t> row(Index r) const {
    return std::span(documents).subspan(begin[r], begin[r + 1] - begin[r]);
  }
};

/// Packs documents in their order by next-fit: a document that does not fit into what is left of a
/// row begins the next. Document i has starts[i + 1] - starts[i] tokens, at least one and at most
/// `sequence`. `starts` has at most 2^32 - 1 documents and at least one.
Packing pack_in_order(std::span<const Index> starts, Index sequence);

/// Packs documents in the order of data/permutation, by best-fit into at most `open_rows` rows: a
/// document is added to the open row that has the least room, but enough. If none has, it begins a
/// new row; of `open_rows` rows, the one with the least room is closed before. Of equal ones, the
/// one that began first counts. Rows are in the order in which they began. Each (seed, epoch) gives
/// other rows, and possibly another number of them.
Packing pack_shuffled(std::span<const Index> starts, Index sequence, std::uint64_t seed,
                      std::uint64_t epoch);

inline constexpr std::size_t open_rows = 64;

}  // namespace kzero::data
