// The samples of another source from sample `shift` on.
#pragma once

#include "data/batch_source.hpp"

namespace kzero::tests {

struct ShiftedSource : data::BatchSource {
  ShiftedSource(const data::BatchSource& from, Index by) : samples(from), shift(by) {}

  void batch(Index first, Index count, Token* inputs, Token* targets) const override {
    samples.batch(first + shift, count, inputs, targets);
  }
  bool has_documents() const override { return samples.has_documents(); }
  void documents(Index first, Index count, const Token* inputs, std::int32_t* begin,
                 std::int32_t* end) const override {
    samples.documents(first + shift, count, inputs, begin, end);
  }
  std::optional<Index> targets(Index first, Index count) const override {
    return samples.targets(first + shift, count);
  }

  const data::BatchSource& samples;
  Index shift;
};

}  // namespace kzero::tests
