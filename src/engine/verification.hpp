// Verifies the machine (run.verify_every): in every k-th step each micro-batch is computed a second
// time on another data-parallel rank, and hashes of its gradients are compared. Gradients do not
// depend on the rank that computes them, so a difference is a fault of a node. It covers forward
// and backward, the parameters and the tokens that they read; not the sums over ranks and the
// optimizer.
#pragma once

#include <functional>

#include "engine/blueprint.hpp"
#include "engine/gradient_hashes.hpp"
#include "engine/verdict.hpp"
#include "grid/process_grid.hpp"

namespace kzero::engine {

/// A computation of a step's gradients. Rank r takes the micro-batches that are dealt to rank
/// r - shift, so that with another shift each micro-batch is on another rank.
struct Computation {
  Index shift = 0;
  std::optional<Index> hashes{};  // the number under which GradientHashes keeps them
  bool reduces = true;            // the gradients are for the optimizer; else nothing is kept

  /// The rank whose micro-batches this one takes.
  Index dealt_to(Index rank, Index ranks) const { return (rank - shift + ranks) % ranks; }
};

class Verification {
 public:
  /// Runs a computation whose gradients nobody keeps, and waits for its hashes. Collective over the
  /// world.
  using Again = std::function<void(const Computation&)>;

  /// The arguments must outlive the object. `every` > 0.
  Verification(Index every, const Blueprint& blueprint, const grid::ProcessGrid& grid);

  bool is_due(Index step) const { return (step + 1) % every_ == 0; }

  /// The computation beside the step's own. Its shift changes from one verified step to the next,
  /// so that in time every rank is compared with every other.
  Computation second(Index step) const;
  static Computation first() { return {.hashes = 0}; }

  /// Compares both computations of a step, whose hashes have been read. If they differ, computes
  /// again to find the rank that is wrong, and throws Mismatch on every rank. Collective over the
  /// world.
  void require_agreement(Index step, const GradientHashes& hashes, const Again& again);

 private:
  std::uint64_t digest(const GradientHashes& hashes, Index computation, Index round) const;
  std::vector<std::uint64_t> differences(Index step, const GradientHashes& hashes) const;
  std::vector<Computation> more(Index step) const;
  Computed collect(const GradientHashes& hashes, const Computation& by, Index micro_batch) const;
  std::string describe(Index step, Index micro_batch, Index others, const Verdict& verdict) const;

  Index every_;
  const data::BatchPlan& plan_;
  const param::Table& table_;
  const grid::ProcessGrid& grid_;
  std::vector<Index> order_;  // of units, as backward completes their gradients
  Index last_agreed_ = -1;    // step
};

}  // namespace kzero::engine
