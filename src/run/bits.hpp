// Lists what the bits of a training depend on, and checks whether a restart keeps them.
#pragma once

#include <cstdint>
#include <optional>
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

/// Returns the reasons why the number of data-parallel ranks changes the bits of a resolved deck's
/// training. There are none with default settings.
std::vector<std::string> rank_dependence(const deck::Config& config);

/// Lists everything that the bits of a resolved deck's training depend on. The run prints the list
/// at its start.
std::vector<std::string> bits_depend_on(const deck::Config& config, const std::string& arithmetic);

/// Returns the first step after those of the checkpoint whose batch has another size than in the
/// checkpoint's deck; nullopt if there is none.
std::optional<Index> first_other_batch(const checkpoint::Manifest& saved,
                                       const deck::Config& config);

/// Returns what keeps a run from resuming a checkpoint bit for bit; empty if nothing does.
/// `deck_changes` is the result of deck::changes(). `config` is resolved. Other batch sizes count
/// only in the first step of the run: see first_other_batch() for later ones.
std::vector<std::string> bit_changes(const checkpoint::Manifest& saved,
                                     std::span<const std::string> deck_changes,
                                     const deck::Config& config, const Provenance& now);

/// Digests everything that the bits of a training depend on except for the sizes of batches,
/// including the values. Launches with the same digest and the same initial state compute the same
/// bits as long as their batches have the same sizes. `deck` is the resolved deck as
/// TOML, `config` the same deck as values.
std::uint64_t bits_digest(const std::string& deck, const deck::Config& config,
                          const Provenance& provenance);

}  // namespace kzero::run
