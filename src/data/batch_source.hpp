// The source of a step's samples: all that training and validation see of the data.
#pragma once

#include "base/types.hpp"

namespace kzero::data {

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
  /// targets [count, T]. Allocates nothing. Throws Error(files).
  virtual void batch(Index first_sample, Index count, Token* inputs, Token* targets) const = 0;
};

}  // namespace kzero::data
