// The ZeRO stages (arXiv 1910.02054, section 5): what each one partitions over the data-parallel
// ranks.
#pragma once

#include "param/flat_layout.hpp"

namespace kzero::zero {

enum class Placement { replicated, partitioned };

struct Stage {
  Placement parameters = Placement::replicated;
  Placement gradients = Placement::replicated;
  Placement optimizer = Placement::replicated;
  Index copies = 1;      // of partitioned parameters: one, or one per node
  bool shared = false;   // the ranks of a copy are those of a node, which hold it in shared memory
  Index unit_ranks = 1;  // as many ranks of a node gather a unit once, into memory that they share

  /// Returns whether units of parameters are gathered before they are used.
  constexpr bool gathers_parameters() const {
    return parameters == Placement::partitioned && !shared;
  }

  /// Returns whether an update ends with an all-gather, because each rank keeps parameters that
  /// another rank updates.
  constexpr bool gathers_updates() const {
    return optimizer == Placement::partitioned &&
           (parameters == Placement::replicated || copies > 1);
  }
};

/// Stage 0 is plain data parallelism, 1 is P_os, 2 adds P_g, and 3 adds P_p. With a single rank,
/// every stage is stage 0. With several copies of the parameters, each is partitioned over
/// ranks / copies ranks, which may share its memory. If they do not, `unit_ranks` ranks of a node
/// may share the units that they gather.
constexpr Stage stage(Index number, Index ranks, Index copies = 1, bool shared = false,
                      Index unit_ranks = 1) {
  const auto from = [=](Index first, Index parts) {
    return number >= first && parts > 1 ? Placement::partitioned : Placement::replicated;
  };
  const Placement parameters = from(3, ranks / copies);
  const bool is_cut = parameters == Placement::partitioned;
  return {parameters,          from(2, ranks),   from(1, ranks),
          is_cut ? copies : 1, is_cut && shared, is_cut && !shared ? unit_ranks : 1};
}

/// Elements [begin, end) of a unit.
struct Range {
  Index begin = 0;
  Index end = 0;
};

/// Returns the range of a unit that a rank holds under a placement, without padding.
inline Range held(Placement placement, const param::UnitLayout& unit, Index rank) {
  if (placement == Placement::replicated) return {0, unit.elements};
  const Index begin = rank * unit.shard < unit.elements ? rank * unit.shard : unit.elements;
  const Index end = begin + unit.shard < unit.elements ? begin + unit.shard : unit.elements;
  return {begin, end};
}

}  // namespace kzero::zero
