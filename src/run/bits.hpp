// Decides what the bits of a training run depend on, and whether a restart keeps them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "deck/config.hpp"

namespace kzero::run {

/// Facts outside the deck that decide whether a run resumes bit for bit.
struct Provenance {
  std::uint64_t data_digest = 0;
  std::string arithmetic{};  // see engine::arithmetic_of()
};

/// Returns the reasons why a resolved deck's bits depend on the number of data-parallel ranks.
/// There are none by default.
std::vector<std::string> rank_dependence(const deck::Config& config);

/// Lists everything that a resolved deck's bits depend on, for the start of a run.
std::vector<std::string> bits_depend_on(const deck::Config& config, const std::string& arithmetic);

/// Returns the reasons why a run cannot resume bit for bit from a checkpoint. `deck_changes` lists
/// the keys whose values differ, as deck::changes() does. `config` must be resolved.
std::vector<std::string> bit_changes(const checkpoint::Manifest& saved,
                                     std::span<const std::string> deck_changes,
                                     const deck::Config& config, const Provenance& now);

/// Returns a digest of everything that a training run's bits depend on, values included. Launches
/// with equal digests and initial states compute the same. `deck` is the resolved deck as TOML, and
/// `config` as values.
std::uint64_t bits_digest(const std::string& deck, const deck::Config& config,
                          const Provenance& provenance);

}  // namespace kzero::run
