// Documents in sequences, as batches of a model.
#pragma once

#include <algorithm>
#include <vector>

#include "data/batch_source.hpp"
#include "model/model.hpp"
#include "support/guarded.hpp"

namespace kzero::tests {

/// A document, and the row and offset of its first token. Token i is a target if flags[i] is 1.
struct PlacedDocument {
  std::vector<Token> tokens;
  std::vector<int> flags;
  Index row = 0, offset = 0;
};

/// Rows with documents. The rest of a row is padding: documents of one token without a target.
class PackedSamples : public data::BatchSource {
 public:
  PackedSamples(Index rows, Index sequence, const std::vector<PlacedDocument>& documents,
                Token padding = 0)
      : sequence_(sequence),
        inputs_(rows * sequence, padding),
        targets_(rows * sequence, no_target),
        begin_(rows * sequence),
        end_(rows * sequence) {
    for (Index i = 0; i < rows * sequence; ++i) {
      begin_[i] = static_cast<std::int32_t>(i % sequence);
      end_[i] = begin_[i] + 1;
    }
    for (const PlacedDocument& document : documents) place(document);
  }

  void batch(Index first_sample, Index count, Token* inputs, Token* targets) const override {
    std::copy_n(inputs_.begin() + first_sample * sequence_, count * sequence_, inputs);
    std::copy_n(targets_.begin() + first_sample * sequence_, count * sequence_, targets);
  }

  const std::vector<std::int32_t>& begin() const { return begin_; }
  const std::vector<std::int32_t>& end() const { return end_; }
  Index target_count() const {
    return std::ranges::count_if(targets_, [](Token target) { return target >= 0; });
  }

 private:
  void place(const PlacedDocument& document) {
    const Index at = document.row * sequence_ + document.offset;
    const Index count = static_cast<Index>(document.tokens.size());
    for (Index i = 0; i < count; ++i) {
      inputs_[at + i] = document.tokens[i];
      if (i + 1 < count && document.flags[i + 1] == 1) targets_[at + i] = document.tokens[i + 1];
      begin_[at + i] = static_cast<std::int32_t>(document.offset);
      end_[at + i] = static_cast<std::int32_t>(document.offset + count);
    }
  }

  Index sequence_;
  std::vector<Token> inputs_, targets_;
  std::vector<std::int32_t> begin_, end_;
};

}  // namespace kzero::tests
