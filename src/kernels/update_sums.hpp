// An optimizer pass that updates state and adds up quantities of an entire parameter, such as its
// norm, for the next pass. Its rule is one of element_update.hpp that also has
//   static constexpr int sums                        sums of values >= 0
//   template <int s> KOKKOS_INLINE_FUNCTION float term(const float (&state)[arrays]) const
//                                                    an element's term of sum s, from its state
//                                                    after the update
// Terms are added in fp32 over blocks of squares_block elements, counted from the unit's beginning.
// The blocks are added exactly. Ranges that meet at multiples of squares_block therefore give the
// same totals however a unit is divided.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/element_update.hpp"
#include "kernels/exact_sum.hpp"
#include "kernels/reduction.hpp"

namespace kzero::kernels {

template <int count>
struct ExactSums {
  ExactSum sum[count];

  KOKKOS_INLINE_FUNCTION ExactSums& operator+=(const ExactSums& other) {
    for (int s = 0; s < count; ++s) sum[s] += other.sum[s];
    return *this;
  }
};

/// The blocks of a range of a unit's elements.
struct SquaresBlocks {
  Index first, last;  // elements of the unit

  KOKKOS_INLINE_FUNCTION Index count() const {
    return ceil_div(last, Index{squares_block}) - first / squares_block;
  }
  KOKKOS_INLINE_FUNCTION Index begin(Index number) const {
    return Kokkos::max(first, (first / squares_block + number) * squares_block);
  }
  KOKKOS_INLINE_FUNCTION Index end(Index number) const {
    return Kokkos::min(last, (first / squares_block + number + 1) * squares_block);
  }
};

/// Adds sums to those in consecutive words, and moves their carries up.
template <int count>
void add_to_words(const ExactSums<count>& sums, std::uint64_t* words) {
  for (int s = 0; s < count; ++s) {
    ExactSum total = ExactSum::of_words(words, s);
    total += sums.sum[s];
    total.carry();
    std::ranges::copy(total.words(), words + s * ExactSum::words_of_sum);
  }
}

namespace detail {

inline constexpr Index sum_blocks_at_once = 128;  // per team, or per host thread at a time

template <int s, class Rule>
struct Term {
  Rule rule;

  template <class... State>
  KOKKOS_INLINE_FUNCTION float operator()(State... values) const {
    const float state[] = {values...};
    return rule.template term<s>(state);
  }
};

template <class T, class Rule, std::size_t... a, std::size_t... s>
void host_block(const Rule& rule, Index n, const UpdateArrays<T, Rule::arrays>& at,
                ExactSums<Rule::sums>& total, std::index_sequence<a...>,
                std::index_sequence<s...>) {
  host_update(rule, n, at);
  (total.sum[s].add(host_sum(
       n, [=](Index i) { return Term<static_cast<int>(s), Rule>{rule}(at.state[a][i]...); })),
   ...);
}

template <class T, class Rule, std::size_t... a, std::size_t... s>
KOKKOS_INLINE_FUNCTION void device_block(const Team& team, const Rule& rule, Index n,
                                         const UpdateArrays<T, Rule::arrays>& at,
                                         ExactSums<Rule::sums>& total, std::index_sequence<a...>,
                                         std::index_sequence<s...>) {
  const Lanes thread{team};
  device_update(thread, rule, n, at);
  const float terms[] = {device_sum(thread, n, Term<static_cast<int>(s), Rule>{rule},
                                    static_cast<const float*>(at.state[a])...)...};
  (total.sum[s].add(terms[s]), ...);  // each lane has its own total and adds the same terms
}

/// Updates a block and adds its terms to the sums of its thread.
template <class T, class Rule>
KOKKOS_INLINE_FUNCTION void team_block(const Team& team, const Rule& rule, Index n,
                                       const UpdateArrays<T, Rule::arrays>& at,
                                       ExactSums<Rule::sums>& total) {
  constexpr std::make_index_sequence<Rule::arrays> arrays;
  constexpr std::make_index_sequence<Rule::sums> sums;
  if constexpr (tensor::on_host) {
    host_block(rule, n, at, total, arrays, sums);
  } else {
    device_block(team, rule, n, at, total, arrays, sums);
  }
}

/// Adds sums to those in consecutive words, to which other teams add at the same time. Integers
/// have the same sum in any order. Carries stay where they are: an exact sum has room for the
/// blocks of any parameter.
template <int count>
KOKKOS_INLINE_FUNCTION void add_atomically(const ExactSums<count>& sums, std::uint64_t* words) {
  for (int s = 0; s < count; ++s) {
    for (const std::uint64_t word : sums.sum[s].word) {
      if (word != 0) Kokkos::atomic_add(words, word);
      ++words;
    }
  }
}

}  // namespace detail

/// Elements of one parameter, their rule, and where the sums of their terms are added.
template <class T, class Rule>
struct UpdateSumPart {
  UpdatePart<T, Rule> part;
  Index first = 0;                 // number of element 0 within the unit
  std::uint64_t* words = nullptr;  // of Rule::sums exact sums; null: not added

  KOKKOS_INLINE_FUNCTION SquaresBlocks sum_blocks() const { return {first, first + part.count}; }

  Index blocks() const { return ceil_div(sum_blocks().count(), detail::sum_blocks_at_once); }

  template <class Where>
  static void launch(const Where& where,
                     const LaunchTable<UpdateSumPart, update_parts_at_once>& t) {
    update_and_sum(where, t);
  }

  /// Calls f(count, arrays) for the elements of sum block `number`.
  template <class F>
  KOKKOS_INLINE_FUNCTION void with_block(Index number, const F& f) const {
    const Index begin = sum_blocks().begin(number);
    f(sum_blocks().end(number) - begin, part.arrays + (begin - first));
  }
};

template <class T, class Rule>
using UpdateSumTable = LaunchTable<UpdateSumPart<T, Rule>, update_parts_at_once>;
template <class T, class Rule, class Where>
using UpdateSumBatch = LaunchBatch<UpdateSumPart<T, Rule>, update_parts_at_once, Where>;

/// Updates all elements of a table and adds up their terms. Arrays and words are in device memory.
template <class T, class Rule>
void update_and_sum(const Execution& exec, const UpdateSumTable<T, Rule>& table) {
  using Sums = ExactSums<Rule::sums>;
  const UpdateSumTable<T, Rule> t = table;
  Kokkos::parallel_for(
      "kzero::kernels::update_and_sum",
      TablePolicy(exec, static_cast<int>(t.blocks()), team_size(16), vector_length(8)),
      KOKKOS_LAMBDA(const Team& team) {
        const int which = t.part_of(team.league_rank());
        const UpdateSumPart<T, Rule>& own = t.part(which);
        const Index turn = team.league_rank() - t.first_block(which);
        const Index from = turn * Index{detail::sum_blocks_at_once};
        const Index to =
            Kokkos::min(own.sum_blocks().count(), from + Index{detail::sum_blocks_at_once});
        Sums sums;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, from, to),
            [&](Index number, Sums& total) {
              own.with_block(number, [&](Index n, const UpdateArrays<T, Rule::arrays>& at) {
                detail::team_block(team, own.part.rule, n, at, total);
              });
            },
            sums);
        if (own.words == nullptr) return;
        Kokkos::single(Kokkos::PerTeam(team), [&]() { detail::add_atomically(sums, own.words); });
      });
}

/// Does the same with arrays and words in host memory.
template <class T, class Rule>
void update_and_sum(HostCores cores, const UpdateSumTable<T, Rule>& table) {
  for_blocks("kzero::kernels::update_and_sum_on_host", cores, table.blocks(), [&](Index number) {
    const int which = table.part_of(number);
    const UpdateSumPart<T, Rule>& own = table.part(which);
    const Index from = (number - table.first_block(which)) * detail::sum_blocks_at_once;
    const Index to = std::min(own.sum_blocks().count(), from + detail::sum_blocks_at_once);
    ExactSums<Rule::sums> sums;
    for (Index block = from; block < to; ++block) {
      own.with_block(block, [&](Index n, const UpdateArrays<T, Rule::arrays>& at) {
        detail::host_block(own.part.rule, n, at, sums, std::make_index_sequence<Rule::arrays>(),
                           std::make_index_sequence<Rule::sums>());
      });
    }
    if (own.words != nullptr) detail::add_atomically(sums, own.words);
  });
}

}  // namespace kzero::kernels
