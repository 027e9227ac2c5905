// Plans variants of a deck and keeps those that the rules accept and a rank's memory holds.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace kzero::plan {

/// The memory of a rank or of its device, and of the host for what is offloaded from a device.
struct Room {
  Index device = 0;
  Index host = std::numeric_limits<Index>::max();
};

class Fitter {
 public:
  /// Variants are launched on `ranks` with `threads` each.
  Fitter(Index ranks, Index threads, const Room& room)
      : ranks_(ranks), threads_(threads), room_(room) {}

  /// Returns the plan of a deck if the rules accept it and it fits.
  std::optional<Entry> attempt(deck::Config config) const;

  /// Returns the share of the memory that a deck needs, of the device or of the host for what is
  /// offloaded: at most 1 if it fits, and infinite if the rules refuse the deck.
  double load_of(deck::Config config) const;

  /// Completes a deck by the rules, or returns their objections.
  std::optional<std::string> refusal(deck::Config& config) const;

  /// Returns whether the parameters and optimizer state of the deck's model fit, which no
  /// micro-batch, sequence or mode of recomputation changes. Learned positions are counted for the
  /// shortest sequence.
  bool holds_states(deck::Config config) const;

  /// Returns the plan with the largest micro-batch that fits. Micro-batches divide a rank's part of
  /// the global batch.
  std::optional<Entry> largest_micro_batch(deck::Config config) const;

  /// Returns the plan with the longest sequence that fits, in micro-batches of one. Its length is a
  /// multiple of 64 tokens for each chunk.
  std::optional<Entry> longest_sequence(deck::Config config) const;

  /// Returns the plan with the most layers that fit.
  std::optional<Entry> max_layers(deck::Config config) const;

 private:
  /// Plans a deck, which is empty if the rules refuse it or its memory exceeds the counters.
  std::optional<Entry> planned(deck::Config& config) const;
  double load_of(const deck::Config& config, const Entry& entry) const;

  Index ranks_, threads_;
  Room room_;
};

/// The recomputation modes of a deck to try. P_a needs tensor ranks to partition a block's input.
std::vector<deck::Recompute> recompute_variants(const deck::Config& deck);

}  // namespace kzero::plan
