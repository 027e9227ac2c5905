// One micro-batch's tokens on the device, refilled for every micro-batch. Rows are also grouped by
// token, which makes the embedding's backward sum free of atomics.
#pragma once

#include <vector>

#include "data/sampler.hpp"
#include "memory/arenas.hpp"
#include "model/model.hpp"

namespace kzero::train {

class Batches {
 public:
  /// Takes memory for `batch` sequences of `sequence` tokens from the io category.
  Batches(memory::Arenas& arenas, Index batch, Index sequence, Index vocab);

  /// Reads samples [first_sample, first_sample + batch) and enqueues their copy to the device,
  /// where the backward of the previous batch may still be running; the loss of that batch must
  /// have been read back, as then its copy is complete and the host's memory free.
  model::Batch load(const tensor::Execution& exec, const data::BatchSource& samples,
                    Index first_sample);

 private:
  void group_by_token();

  Index batch_, rows_;
  Token *inputs_, *targets_, *token_;
  Index *order_, *begin_;
  std::vector<Token> host_inputs_, host_targets_, host_token_;
  std::vector<Index> host_order_, host_begin_, count_;
  Index distinct_ = 0;
};

}  // namespace kzero::train
