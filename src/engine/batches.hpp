// One micro-batch's tokens on the device, refilled for every micro-batch. The rows of each chunk
// that this rank computes are also grouped by token. The embedding's backward pass can then add
// gradients without atomics.
#pragma once

#include <array>
#include <vector>

#include "data/sampler.hpp"
#include "memory/arenas.hpp"
#include "model/model.hpp"
#include "runtime/event.hpp"

namespace kzero::engine {

struct TokensShape {
  Index batch = 1;     // sequences
  Index sequence = 1;  // tokens of each
  Index vocab = 1;
  bool documents = false;  // with room for the document of each position
  bool weights = false;    // with room for the weight of each position
  bool pairs = false;      // with room for pairs of documents
  Index top = 0;           // with room for this many tokens of a teacher for each row
  float teacher_weight = 0;
  model::SequenceRank part{};
};

class Batches {
 public:
  /// Allocates complete sequences from the io category. If the host cannot write there, also
  /// allocates two pinned buffers from the offloaded category.
  Batches(memory::Arenas& arenas, const TokensShape& shape);

  /// Reads samples [first_sample, first_sample + batch), which may have documents only if there is
  /// room for them, and enqueues their copy to the device, which may still be computing the
  /// previous batch. Waits only for the copy of the batch before that, whose buffer is reused.
  /// Returns this rank's rows, and the documents of all rows. The groups are valid until the next
  /// call.
  model::Batch load(const tensor::Execution& exec, const data::BatchSource& samples,
                    Index first_sample);

 private:
  /// The arrays of a micro-batch, contiguous so that one copy moves them all.
  struct Arrays {
    std::byte* data = nullptr;
    Index bytes = 0;
    Token *inputs = nullptr, *targets = nullptr, *token = nullptr;
    Index *order = nullptr, *group_begin = nullptr;
    std::int32_t *document_begin = nullptr, *document_end = nullptr;  // null: no room
    float* weights = nullptr;                                         // likewise
    kernels::PairRows* pairs = nullptr;                               // likewise
    Token* top_tokens = nullptr;                                      // likewise
    float* top_ln_p = nullptr;
  };

  /// Arrays that the host fills, and the event after their last copy to the device.
  struct Staged {
    Arrays arrays;
    runtime::Event copied{};
  };

  static Arrays take(memory::Arenas& arenas, memory::Category category, const TokensShape& shape);
  Index group_by_token(const Arrays& host, Index chunk);
  kernels::TeacherRows teacher() const;
  Index load_pairs(const Arrays& host, const data::BatchSource& samples, Index first_sample);

  TokensShape shape_;
  Index rows_;   // of all sequences
  Index first_;  // row of this rank
  Index chunk_;  // rows of one
  Arrays device_;
  std::array<Staged, 2> staged_;  // used alternately (both are device_ in host builds)
  std::size_t next_ = 0;          // index into staged_
  std::vector<Index> count_;
  std::vector<kernels::TokenGroups> groups_;  // of this rank's chunks
  std::vector<data::Pair> pairs_;             // as many as fit
};

}  // namespace kzero::engine
