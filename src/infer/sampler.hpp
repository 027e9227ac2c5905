// Chooses the next token from logits, in the order of transformers' generate(): the logits are
// divided by the temperature; then top-k, top-p (nucleus sampling; Holtzman et al., arXiv
// 1904.09751) and min-p (Nguyen et al., arXiv 2407.01082) are applied, each to the softmax of the
// remaining tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace kzero::infer {

struct Sampling {
  double temperature = 1;  // 0: always the token with the largest logit
  Index top_k = 0;         // keeps the k largest logits; lower ids win ties; 0: all
  double top_p = 1;        // keeps the fewest tokens, largest first, with at least this total
  double min_p = 0;        // keeps tokens at least this probable, relative to the most probable
  std::uint64_t seed = 1;
};

/// The inputs of a draw in addition to logits and seed: the prompt's number, and the position of
/// the token that is chosen. Batches and ranks have no effect.
struct Place {
  Index prompt = 0;
  Index position = 0;
};

class Sampler {
 public:
  explicit Sampler(const Sampling& sampling) : s_(sampling) {}

  /// Returns the token for logits [V]; among equal logits the lower id comes first. Throws
  /// Error(diverged) if a logit is NaN or none is finite.
  Token choose(std::span<const float> logits, const Place& place);

 private:
  struct Candidate {
    double weight = 0;  // its probability times a common factor
    Token token = 0;
  };

  void weigh(std::span<const float> logits, float largest);
  void keep_top_k();
  void keep_top_p();

  Sampling s_;
  std::vector<Candidate> candidates_;
};

}  // namespace kzero::infer
