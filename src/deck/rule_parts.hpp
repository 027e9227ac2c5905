// The base of the classes of rules: it collects broken rules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "deck/rules.hpp"

namespace kzero::deck {

class ViolationList {
 protected:
  void refuse_if(bool is_broken, std::vector<std::string> keys, std::string text) {
    if (is_broken) violations_.push_back({std::move(keys), std::move(text)});
  }

  std::vector<Violation> violations_;
};

// The rules between keys of [data], [[data.blend]] and [[evaluate]]; part of apply_rules().

/// Fills in the names and formats that the deck leaves out. Returns every broken rule.
std::vector<Violation> apply_data_rules(Config& config, Purpose purpose);

// The rules of [preference] and its data.

/// Checks [preference] and returns every broken rule. The rules of sequences must have been
/// applied.
std::vector<Violation> apply_preference_rules(const Config& config, Purpose purpose);

/// Checks [distill] and what it excludes. Returns every broken rule.
std::vector<Violation> apply_distill_rules(const Config& config);

// Rules of grid.sequence and train.sequence_chunks.

/// Checks how ranks share sequences and returns every broken rule. Resolves train.sequence_chunks,
/// and train.micro_batch if sequences have several chunks. The model's rules must have been
/// applied.
std::vector<Violation> apply_sequence_rules(Config& config);

// Rules of train.global_batch, train.micro_batch and [[train.phase]].

/// Checks the batch of every phase of the training, and returns every broken rule. Resolves
/// train.micro_batch. The rules of ranks and sequences must have been applied.
std::vector<Violation> apply_batch_rules(Config& config);

// Rules of model.experts.

/// Checks the keys of experts and what they exclude. Returns every broken rule.
std::vector<Violation> apply_expert_rules(const Config& config);

}  // namespace kzero::deck
