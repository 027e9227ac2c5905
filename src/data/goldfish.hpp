// Goldfish loss (Hans et al., arXiv 2406.10209): some targets are left out of the loss, always the
// same ones for the same text, so that a model cannot learn the text by heart. A pure function of
// the tokens. It is independent of files, windows and ranks.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.hpp"

namespace kzero::data {

struct Goldfish {
  Index k = 0;  // one target in so many is left out, as a mean; 0: none
  Index h = 0;  // tokens before a target that decide

  bool is_on() const { return k > 0; }
};

/// Returns whether the target after these h tokens is left out: whether their hash, the XXH3 of
/// their 32-bit integers in little endian with 64 bits, is below floor((2^64 - 1) / k).
bool is_dropped(const Goldfish& goldfish, std::span<const Token> before);

/// Leaves out targets of a sequence: targets[i] is the token after inputs[i], and becomes no_target
/// if is_dropped() of the h inputs up to i. A target with fewer than h tokens of its document
/// before it in the sequence stays. `begin` has the first position of each position's document;
/// empty: the sequence is one. Returns the number of targets that are left.
Index drop_targets(const Goldfish& goldfish, std::span<const Token> inputs,
                   std::span<const std::int32_t> begin, std::span<Token> targets);

}  // namespace kzero::data
