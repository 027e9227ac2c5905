// One micro-batch's tokens on the device, refilled for every micro-batch. Rows are also grouped by
// token, which makes the embedding's backward sum free of atomics.
#pragma once

#include <array>
#include <vector>

#include "data/sampler.hpp"
#include "memory/arenas.hpp"
#include "model/model.hpp"
#include "runtime/event.hpp"

namespace kzero::engine {

class Batches {
 public:
  /// Takes memory for `batch` sequences of `sequence` tokens from the io category, and where the
  /// host cannot write there two pinned buffers from the offloaded category.
  Batches(memory::Arenas& arenas, Index batch, Index sequence, Index vocab);

  /// Reads samples [first_sample, first_sample + batch) and enqueues their copy to the device,
  /// where the previous batch may still be computed. Waits only for the copy of the batch before
  /// that one, whose buffer it fills.
  model::Batch load(const tensor::Execution& exec, const data::BatchSource& samples,
                    Index first_sample);

 private:
  /// A micro-batch's arrays, one behind another, so that one copy moves them all.
  struct Arrays {
    std::byte* data = nullptr;
    Index bytes = 0;
    Token *inputs = nullptr, *targets = nullptr, *token = nullptr;
    Index *order = nullptr, *group_begin = nullptr;
  };

  /// Arrays that the host fills, and the point when the device has their last values.
  struct Staged {
    Arrays arrays;
    runtime::Event copied{};
  };

  static Arrays take(memory::Arenas& arenas, memory::Category category, Index rows);
  void group_by_token(const Arrays& host);

  Index batch_, rows_;
  Arrays device_;
  std::array<Staged, 2> staged_;  // filled in turn; on hosts both are device_
  std::size_t next_ = 0;          // of staged_
  std::vector<Index> count_;
  Index distinct_ = 0;
};

}  // namespace kzero::engine
