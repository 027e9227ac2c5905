// Samples from several sources in the proportion of their weights. Each source has its own epochs:
// a small source may be repeated before a large one has been read once.
#pragma once

#include <vector>

#include "data/batch_source.hpp"
#include "data/blend_order.hpp"
#include "data/sampler.hpp"

namespace kzero::data {

class Blend : public BatchSource {
 public:
  /// Takes one sampler and one share (shares_of) per source. With one source the samples are that
  /// sampler's.
  Blend(std::vector<Sampler> samplers, std::vector<Index> shares);

  Index source_count() const { return static_cast<Index>(samplers_.size()); }
  const Sampler& source(Index i) const { return samplers_[i]; }

  /// The sequences of all sources, each counted once.
  Index windows() const;

  /// The fraction of the samples that come from a source, 0 to 1.
  double share(Index i) const;

  /// Returns how many times a source is read during the first `samples` samples of the blend.
  double epochs(Index i, Index samples) const;

  /// Returns whether any source repeats a sequence within the first `samples` samples.
  bool repeats(Index samples) const;

  void batch(Index first_sample, Index count, Token* inputs, Token* targets) const override;

  /// A digest of everything that determines which window of which source a sample reads.
  std::uint64_t digest() const;

 private:
  std::vector<Sampler> samplers_;
  BlendOrder order_;
  Index sequence_;
};

}  // namespace kzero::data
