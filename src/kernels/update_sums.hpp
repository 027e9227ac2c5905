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
  Kokkos::single(Kokkos::PerThread(team), [&]() { (total.sum[s].add(terms[s]), ...); });
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

}  // namespace detail

/// Updates elements [first, first + count) of a unit and returns the sums of their terms. The
/// arrays are in device memory and begin at element `first`. Waits for the result.
template <class T, class Rule>
ExactSums<Rule::sums> update_and_sum(const Execution& exec, const Rule& rule,
                                     const UpdateArrays<T, Rule::arrays>& arrays, Index first,
                                     Index count) {
  const Rule r = rule;
  const UpdateArrays<T, Rule::arrays> all = arrays;
  const SquaresBlocks blocks{first, first + count};
  ExactSums<Rule::sums> result;
  Kokkos::parallel_reduce(
      "kzero::kernels::update_and_sum",
      Policy(exec, static_cast<int>(ceil_div(blocks.count(), detail::sum_blocks_at_once)),
             team_size(16), vector_length(8)),
      KOKKOS_LAMBDA(const Team& team, ExactSums<Rule::sums>& total) {
        const Index from = team.league_rank() * Index{detail::sum_blocks_at_once};
        const Index to = Kokkos::min(blocks.count(), from + Index{detail::sum_blocks_at_once});
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, from, to), [&](Index number) {
          const Index begin = blocks.begin(number), n = blocks.end(number) - begin;
          const auto at = all + (begin - blocks.first);
          detail::team_block(team, r, n, at, total);
        });
      },
      result);
  return result;
}

/// Does the same with arrays in host memory.
template <class T, class Rule>
ExactSums<Rule::sums> update_and_sum(HostCores, const Rule& rule,
                                     const UpdateArrays<T, Rule::arrays>& arrays, Index first,
                                     Index count) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const SquaresBlocks blocks{first, first + count};
  ExactSums<Rule::sums> result;
  Kokkos::parallel_reduce(
      "kzero::kernels::update_and_sum_on_host",
      Kokkos::RangePolicy<Host, Kokkos::IndexType<Index>>(
          Host(), 0, ceil_div(blocks.count(), detail::sum_blocks_at_once)),
      [=](Index part, ExactSums<Rule::sums>& total) {
        const Index from = part * detail::sum_blocks_at_once;
        const Index to = std::min(blocks.count(), from + detail::sum_blocks_at_once);
        for (Index number = from; number < to; ++number) {
          const Index begin = blocks.begin(number);
          detail::host_block(rule, blocks.end(number) - begin, arrays + (begin - first), total,
                             std::make_index_sequence<Rule::arrays>(),
                             std::make_index_sequence<Rule::sums>());
        }
      },
      result);
  return result;
}

}  // namespace kzero::kernels
