#include "infer/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/philox.hpp"

namespace kzero::infer {

namespace {

/// The token with the largest logit.
Token argmax(std::span<const float> logits) {
  Token best = 0;
  bool is_number = true;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    is_number = is_number && !std::isnan(logits[i]);
    if (logits[i] > logits[best]) best = static_cast<Token>(i);
  }
  KZERO_REQUIRE(is_number && std::isfinite(logits[best]), ExitCode::diverged,
                "the model's logits are not finite: its weights are damaged, or too large for the "
                "precision it computes in (--precision fp32 has the widest range)");
  return best;
}

/// A number in [0, 1) with 53 random bits.
double uniform(std::uint64_t seed, const Place& place) {
  const Philox4 r = philox(seed, static_cast<std::uint64_t>(place.position),
                           static_cast<std::uint64_t>(place.prompt));
  const auto bits = (static_cast<std::uint64_t>(r.word[0]) << 32U | r.word[1]) >> 11U;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace

void Sampler::weigh(std::span<const float> logits, float largest) {
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double z = (static_cast<double>(logits[i]) - static_cast<double>(largest));
    candidates_.push_back({std::exp(z / s_.temperature), static_cast<Token>(i)});
  }
}

void Sampler::keep_top_k() {
  const auto first = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  };
  if (s_.top_k == 0 || s_.top_k >= static_cast<Index>(candidates_.size())) return;
  const auto end = candidates_.begin() + s_.top_k;
  std::nth_element(candidates_.begin(), end, candidates_.end(), first);
  candidates_.erase(end, candidates_.end());
  std::sort(candidates_.begin(), candidates_.end(), first);
}

// A heap gives the largest candidates without sorting an entire vocabulary.
void Sampler::keep_top_p() {
  if (s_.top_p >= 1) return;
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  const auto last = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.token > b.token;
  };
  std::make_heap(candidates_.begin(), candidates_.end(), last);
  auto rest = candidates_.end();
  double kept = 0;
  do {
    std::pop_heap(candidates_.begin(), rest, last);
    kept += (--rest)->weight;
  } while (kept < s_.top_p * total && rest != candidates_.begin());
  candidates_.erase(candidates_.begin(), rest);
  std::reverse(candidates_.begin(), candidates_.end());
}

Token Sampler::choose(std::span<const float> logits, const Place& place) {
  const Token best = argmax(logits);
  if (s_.temperature == 0) return best;
  weigh(logits, logits[best]);
  keep_top_k();
  keep_top_p();
  // The largest weight is 1.
  std::erase_if(candidates_, [this](const Candidate& c) { return c.weight < s_.min_p; });
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  const double at = uniform(s_.seed, place) * total;
  double below = 0;
  for (const Candidate& c : candidates_) {
    below += c.weight;
    if (at < below) return c.token;
  }
  return best;  // rounding has left the number above the last sum
}

}  // namespace kzero::infer
