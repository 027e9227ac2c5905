// Samples from several sources in the proportion of their weights. Each source has its own epochs:
// a small source may be repeated before a large one has been read once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.hpp"
#include "data/blend_order.hpp"
#include "data/goldfish.hpp"

namespace kzero::data {

class Blend : public BatchSource {
 public:
  using Sources = std::vector<std::unique_ptr<const EpochSource>>;

  /// Takes one source of samples and one share (shares_of) per source. With one source the samples
  /// are that source's. All sources have documents, or none, and the same holds for teachers. With
  /// `goldfish`, some targets are left out, and one thread uses an object at a time.
  Blend(Sources sources, std::vector<Index> shares, const Goldfish& goldfish = {});

  Index source_count() const { return static_cast<Index>(sources_.size()); }
  const EpochSource& source(Index i) const { return *sources_[i]; }

  /// The sequences of all sources, each counted once; of documents, those of the first epochs.
  Index windows() const;

  /// The fraction of the samples that come from a source, 0 to 1.
  double share(Index i) const;

  /// Returns how many times a source is read during the first `samples` samples of the blend.
  double epochs(Index i, Index samples) const;

  /// Returns whether any source repeats a sequence within the first `samples` samples.
  bool repeats(Index samples) const;

  void batch(Index first_sample, Index count, Token* inputs, Token* targets) const override;
  bool has_documents() const override { return source(0).has_documents(); }
  void documents(Index first_sample, Index count, const Token* inputs, std::int32_t* begin,
                 std::int32_t* end) const override;
  bool counts_by_reading() const override { return goldfish_.is_on(); }
  std::optional<Index> targets(Index first_sample, Index count) const override;
  /// Whether any source has weights. The documents of a source without have the weight 1.
  bool has_weights() const override;
  void weights(Index first_sample, Index count, float* weights) const override;
  std::optional<Index> pairs(Index first_sample, Index count, Pair* pairs) const override;
  bool has_teacher() const override { return source(0).has_teacher(); }
  void teacher(Index first_sample, Index count, Index top, Token* tokens,
               float* ln_p) const override;

  /// The source of a sample, and its number there.
  BlendOrder::Place place(Index sample) const { return order_(sample); }

  /// A digest of everything that determines the source of a sample, and the part that it reads.
  std::uint64_t digest() const;

 private:
  /// The arrays of a sample, for counting and for leaving out targets.
  struct Scratch {
    std::vector<Token> inputs, targets;
    std::vector<std::int32_t> begin, end;
  };

  Index read(Index sample, Token* inputs, Token* targets) const;

  Sources sources_;
  BlendOrder order_;
  Index sequence_;
  Goldfish goldfish_;
  mutable Scratch scratch_;  // empty without goldfish
};

}  // namespace kzero::data
