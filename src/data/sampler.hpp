// Selects the tokens of a sample: a pure function of (seed, global sample index), the same on any
// grid, so that a run resumes by its step number alone. Window w of a stream is the T + 1 tokens
// from w * T on: the first T are the inputs, the last T the targets, and neighbours share one
// token. It is independent of file formats and MPI.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/node_shape.hpp"
#include "base/types.hpp"
#include "data/batch_source.hpp"
#include "data/teacher_file.hpp"
#include "data/token_stream.hpp"
#include "deck/config.hpp"

namespace kzero::data {

/// A place where a micro-batch is computed.
struct Turn {
  Index rank = 0;
  Index round = 0;
};

/// Deals the micro-batches of a step to data-parallel ranks. Round k computes micro-batches
/// [k * ranks, (k + 1) * ranks), dealt to one node after another; with `by_node`, each node
/// computes consecutive micro-batches, again round by round. Samples depend only on the number of
/// the micro-batch, so results need not depend on the number of ranks. `sequence` ranks, counted
/// node by node, share each micro-batch, a part of every sequence each.
struct BatchPlan {
  Index global_batch;  // sequences per step over all ranks; a multiple of micro_batch
  Index ranks;         // in training at most micro_batches()
  Index micro_batch;   // sequences a rank computes at once
  Index nodes = 1;
  bool by_node = false;  // only if the ranks divide the micro-batches, and `sequence` a node's
  Index sequence = 1;    // ranks that share a micro-batch
  Index chunks = 1;      // of a sequence, whose losses are added one after another
  Index begin = 0;       // the first sample of the step (batch_sizes.hpp)

  NodeShape on_nodes() const { return {nodes, ranks / nodes}; }
  Index micro_batches() const { return global_batch / micro_batch; }
  Index rounds() const { return ceil_div(parts(), ranks); }
  /// The parts of all micro-batches, which ranks compute.
  Index parts() const { return micro_batches() * sequence; }
  /// The chunks of a part.
  Index own_chunks() const { return chunks / sequence; }

  /// The number of ranks that have a micro-batch in a round: all, except in the last round.
  Index ranks_in(Index round) const { return std::min(ranks, parts() - round * ranks); }

  /// The part of a micro-batch that a rank has in a round, among parts(); none from parts() on.
  Index part(Index rank, Index round) const {
    const NodeShape shape = on_nodes();
    if (!by_node) return round * ranks + shape.position_of(rank);
    return (shape.node_of(rank) * rounds() + round) * shape.node_ranks + shape.place_of(rank);
  }
  /// The micro-batch of a rank in a round; at least micro_batches() if it has none.
  Index number(Index rank, Index round) const { return part(rank, round) / sequence; }
  bool has(Index rank, Index round) const { return number(rank, round) < micro_batches(); }

  /// Where a part of a micro-batch is computed: the inverse of part().
  Turn turn(Index part) const {
    const NodeShape shape = on_nodes();
    const Index row = part / shape.node_ranks, place = part % shape.node_ranks;
    const Index node = by_node ? row / rounds() : row % nodes;
    return {shape.rank_at(place, node), by_node ? row % rounds() : row / nodes};
  }

  /// The first of the micro_batch global samples of a rank in a round of the step.
  Index first_sample(Index rank, Index round) const {
    return begin + number(rank, round) * micro_batch;
  }
};

/// The number of windows of T + 1 tokens in a stream.
Index count_windows(const TokenStream& stream, Index sequence);

/// Consecutive windows of a stream, in sequential or shuffled order, repeated without end. With an
/// end token, each position after one begins a document; every position still has a target, that of
/// an end token included. A teacher is of the stream in sequences of this length.
class Sampler : public EpochSource {
 public:
  Sampler(std::shared_ptr<const TokenStream> stream, Index sequence, Index first_window,
          Index windows, deck::DataOrder order, std::uint64_t seed,
          std::optional<Token> end_token = {}, std::shared_ptr<const TeacherFile> teacher = {});

  Index windows() const override { return windows_; }
  Index sequence() const override { return sequence_; }
  Index epoch(Index sample) const { return sample / windows_; }

  /// A digest of everything that determines which window a sample reads.
  std::uint64_t digest() const override;

  /// Returns the stream's window that a global sample reads. Shuffled epochs have different orders.
  Index window(Index sample) const;

  void batch(Index first_sample, Index count, Token* inputs, Token* targets) const override;
  bool has_documents() const override { return end_token_.has_value(); }
  void documents(Index first_sample, Index count, const Token* inputs, std::int32_t* begin,
                 std::int32_t* end) const override;
  bool has_teacher() const override { return teacher_ != nullptr; }
  void teacher(Index first_sample, Index count, Index top, Token* tokens,
               float* ln_p) const override;

 private:
  std::shared_ptr<const TokenStream> stream_;
  Index sequence_;
  Index first_window_;
  Index windows_;
  deck::DataOrder order_;
  std::uint64_t seed_;
  std::optional<Token> end_token_;
  std::shared_ptr<const TeacherFile> teacher_;  // null: none
};

}  // namespace kzero::data
