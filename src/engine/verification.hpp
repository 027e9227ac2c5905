// Verifies the machine (run.verify_every). In every k-th step, another data-parallel rank computes
// each micro-batch again, and the gradients' hashes are compared. Gradients do not depend on the
// rank that computes them, so a difference means that a node is faulty. The check covers forward,
// backward, and the parameters and tokens that they read, but not the sums over ranks and the
// optimizer.
#pragma once

#include <functional>

#include "engine/blueprint.hpp"
#include "engine/gradient_hashes.hpp"
#include "engine/verdict.hpp"
#include "grid/process_grid.hpp"

namespace kzero::engine {

/// A computation of a step's gradients. Rank r computes the micro-batches dealt to rank r - shift
/// (modulo the ranks). A different shift therefore moves each micro-batch to another rank.
struct Computation {
  Index shift = 0;
  std::optional<Index> hashes{};  // their number in GradientHashes
  bool reduces = true;            // if false, drops the gradients

  /// The rank whose micro-batches `rank` computes.
  Index dealt_to(Index rank, Index ranks) const { return (rank - shift + ranks) % ranks; }
};

class Verification {
 public:
  /// Runs a computation, drops its gradients, and waits for its hashes. Collective over the world.
  using Again = std::function<void(const Computation&)>;

  /// The arguments must outlive the object. `every` > 0.
  Verification(Index every, const Blueprint& blueprint, const grid::ProcessGrid& grid);

  bool is_due(Index step) const { return (step + 1) % every_ == 0; }

  /// The second computation of a step. Its shift changes with each verified step, so that every
  /// rank is eventually compared with every other.
  Computation second(Index step) const;
  static Computation first() { return {.hashes = 0}; }

  /// Compares both computations of a step. Their hashes must have been read. If the computations
  /// differ, computes again to find the faulty rank, then throws Mismatch on every rank. Collective
  /// over the world.
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
  std::vector<Index> order_;  // the units in the order in which backward completes their gradients
  Index last_agreed_ = -1;    // step
};

}  // namespace kzero::engine
