// How the gradients of a step's micro-batches are added, and where. The order of the additions
// depends on the deck alone (kernels/sum_order.hpp). The ranks and nodes only decide which of
// them happen on the way to a sum's owner.
#pragma once

#include "base/node_shape.hpp"
#include "deck/config.hpp"
#include "kernels/sum_order.hpp"

namespace kzero::zero {

/// The gradients that a rank sends to the owners of the sums.
enum class Route {
  terms,   // its gradient of each micro-batch
  rounds,  // in each round, the sum of its node's gradients, in fp32
  step     // once a step, the sum of its node's gradients of all rounds, in fp32
};

/// The ranks, and the gradients that they add.
struct SumShape {
  Index ranks = 1;
  Index nodes = 1;
  Index terms = 1;          // gradients to add: of chunks of micro-batches, or sums of a rank's
  Index blocks = 1;         // train.sum_blocks
  bool by_library = false;  // the ranks' gradients of a round arrive as one term
  Index sequence = 1;       // ranks whose terms are of one micro-batch
  Index own = 1;            // terms of a rank in a round: chunks of its part of a micro-batch
};

/// Where sums are kept between rounds.
using KeepsSums = deck::KeepsSums;

class SumPlan {
 public:
  SumPlan() = default;
  /// Chooses the route. A node adds its gradients if they are a subtree of the sum: `rounds` needs
  /// a node whose ranks compute whole blocks, a power of two of them; `step`, the same of all
  /// micro-batches of a node. `step` also needs memory for the nodes' sums. Ranks with several
  /// terms in a round send them all.
  SumPlan(const SumShape& shape, KeepsSums keeps);

  const SumShape& shape() const { return shape_; }
  /// Whether nodes may keep sums. The route says whether they do.
  KeepsSums keeps() const { return keeps_; }
  Route route() const { return route_; }
  Index ranks() const { return shape_.ranks; }
  Index nodes() const { return shape_.nodes; }
  Index node_ranks() const { return shape_.ranks / shape_.nodes; }
  NodeShape on_nodes() const { return {nodes(), node_ranks()}; }
  Index own() const { return shape_.own; }
  Index rounds() const { return ceil_div(shape_.terms, shape_.ranks * shape_.own); }

  /// Returns whether the owners receive something in a round.
  bool sends(Index round) const { return route_ != Route::step || round + 1 == rounds(); }

  /// The gradients that node `node` adds in a round, and the number of them.
  kernels::Terms node_terms(Index round) const;
  Index node_count(Index node, Index round) const;

  /// The terms that owners add in a round, and their number. They come from the first `owner_count`
  /// ranks or nodes.
  kernels::Terms owner_terms(Index round) const;
  Index owner_count(Index round) const;

  /// Returns whether a rank has terms in a round.
  bool has(Index rank, Index round) const { return first_term(rank) < terms_in(round); }
  /// The number, within a round, of a rank's first term.
  Index first_term(Index rank) const { return on_nodes().position_of(rank) * own(); }

  /// The most sums that a node, or an owner, keeps from one round to the next.
  int node_open() const;
  int owner_open() const;

 private:
  /// The terms that an owner adds in a full round, with Route::terms.
  Index terms_of_round() const { return shape_.by_library ? 1 : shape_.ranks * shape_.own; }
  Index terms_in(Index round) const {
    const Index all = shape_.ranks * shape_.own;
    return std::min(all, shape_.terms - round * all);
  }

  SumShape shape_;
  KeepsSums keeps_ = KeepsSums::owners;
  Index block_ = 1;
  Route route_ = Route::terms;
};

}  // namespace kzero::zero
