// What the bits of a training depend on, and whether a restart keeps them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "deck/config.hpp"

namespace kzero::run {

/// Facts beside the deck that decide whether a run goes on bit for bit.
struct Provenance {
  std::uint64_t data_digest = 0;
  std::string arithmetic{};  // see engine::arithmetic_of()
};

/// Returns the reasons for which the number of data-parallel ranks shows in the bits of a resolved
/// deck's training; none by default.
std::vector<std::string> rank_dependence(const deck::Config& config);

/// Lists all that the bits of a resolved deck's training depend on, for the start of a run.
std::vector<std::string> bits_depend_on(const deck::Config& config, const std::string& arithmetic);

/// Returns what keeps a run from going on bit for bit from a checkpoint; empty if nothing does.
/// `deck_changes` lists the keys whose values differ, as deck::changes() does; `config` is
/// resolved.
std::vector<std::string> bit_changes(const checkpoint::Manifest& saved,
                                     std::span<const std::string> deck_changes,
                                     const deck::Config& config, const Provenance& now);

/// A digest of all that the bits of a training depend on, with its values: launches with the same
/// one that begin with the same state compute the same. `deck` is resolved, as TOML and as values.
std::uint64_t bits_digest(const std::string& deck, const deck::Config& config,
                          const Provenance& provenance);

}  // namespace kzero::run
