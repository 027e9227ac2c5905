// The source of a step's samples: all that training and validation see of the data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/types.hpp"

namespace kzero::data {

/// A pair of documents among the positions of some samples: the chosen one has positions [chosen,
/// rejected), the rejected one [rejected, end). `targets` are their numbers of targets, and
/// `reference` their sums of ln p under the reference model, or 0.
struct Pair {
  Index chosen = 0, rejected = 0, end = 0;
  Index chosen_targets = 0, rejected_targets = 0;
  double chosen_reference = 0, rejected_reference = 0;
};

/// The fewest tokens of a pair: each document has a token before a target.
inline constexpr Index min_pair_tokens = 4;

/// Returns samples by their global numbers. The same number gives the same tokens on any rank of
/// any grid.
class BatchSource {
 public:
  BatchSource() = default;
  BatchSource(const BatchSource&) = default;
  BatchSource(BatchSource&&) = default;
  BatchSource& operator=(const BatchSource&) = default;
  BatchSource& operator=(BatchSource&&) = default;
  virtual ~BatchSource() = default;

  /// Reads the tokens of samples [first_sample, first_sample + count): inputs [count, T] and
  /// targets [count, T]. Allocates nothing, except for documents at the beginning of an epoch.
  /// Throws Error(files).
  virtual void batch(Index first_sample, Index count, Token* inputs, Token* targets) const = 0;

  /// Returns whether samples hold documents. Otherwise each sample is one.
  virtual bool has_documents() const { return false; }

  /// Writes the document of each position, [begin, end) in its sample: begin [count, T] and end
  /// [count, T]. `inputs` [count, T] are those of batch(). Reads no file. Only with documents.
  virtual void documents(Index first_sample, Index count, const Token* inputs, std::int32_t* begin,
                         std::int32_t* end) const;

  /// Returns whether targets() depends on the tokens, and therefore reads them.
  virtual bool counts_by_reading() const { return false; }

  /// Returns the number of targets of samples [first_sample, first_sample + count), or nullopt if
  /// every position has one. Reads no file, unless counts_by_reading().
  virtual std::optional<Index> targets(Index first_sample, Index count) const;

  /// Returns whether documents have weights, which multiply the losses of their targets.
  virtual bool has_weights() const { return false; }

  /// Writes the weight of each position, that of its document: weights [count, T]. Positions
  /// without a document have 1. Reads no file. Only with weights.
  virtual void weights(Index first_sample, Index count, float* weights) const;

  /// Returns the number of pairs in samples [first_sample, first_sample + count), or nullopt if
  /// documents are not paired. Writes them to `pairs` in order, unless it is null; there may be
  /// count * T / min_pair_tokens. Reads no file.
  virtual std::optional<Index> pairs(Index first_sample, Index count, Pair* pairs) const;

  /// Reads what a teacher says of samples [first_sample, first_sample + count): `top` tokens of
  /// each position and ln p of each, [count, T, top]. Positions without a document have zeros.
  /// Allocates nothing. Throws Error(files). Only with a teacher.
  virtual bool has_teacher() const { return false; }
  virtual void teacher(Index first_sample, Index count, Index top, Token* tokens,
                       float* ln_p) const;
};

inline void BatchSource::documents(Index /*first_sample*/, Index /*count*/, const Token* /*inputs*/,
                                   std::int32_t* /*begin*/, std::int32_t* /*end*/) const {}

inline std::optional<Index> BatchSource::targets(Index /*first_sample*/, Index /*count*/) const {
  return std::nullopt;
}

inline void BatchSource::weights(Index /*first_sample*/, Index /*count*/,
                                 float* /*weights*/) const {}

inline std::optional<Index> BatchSource::pairs(Index /*first_sample*/, Index /*count*/,
                                               Pair* /*pairs*/) const {
  return std::nullopt;
}

inline void BatchSource::teacher(Index /*first_sample*/, Index /*count*/, Index /*top*/,
                                 Token* /*tokens*/, float* /*ln_p*/) const {}

/// How full of documents the samples of an epoch are.
struct Fullness {
  Index documents = 0;
  Index positions = 0;  // of all samples
  Index tokens = 0;     // positions with a document
  Index targets = 0;
  float least_weight = 1, largest_weight = 1;  // of the documents
};

/// Samples that are read again and again, in epochs.
class EpochSource : public BatchSource {
 public:
  virtual Index windows() const = 0;   // samples in the first epoch
  virtual Index sequence() const = 0;  // tokens of a sample

  /// The numbers of a sample's documents in files of documents, in order; empty for streams.
  /// Valid until the next call.
  virtual std::span<const std::uint32_t> documents_of(Index /*sample*/) const { return {}; }

  /// Of the first epoch; empty for streams.
  virtual Fullness fullness() const { return {}; }

  /// A digest of everything that determines which part of the files a sample reads.
  virtual std::uint64_t digest() const = 0;
};

}  // namespace kzero::data
