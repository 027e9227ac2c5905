// Kernels over the elements of an array. Each team or host thread processes one block at a time.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

inline constexpr Index element_block = 4096;

/// Calls work(team, number) for `blocks` blocks of arrays in device memory.
template <class Work>
void for_blocks(const char* label, const Execution& exec, Index blocks, const Work& work) {
  Kokkos::parallel_for(
      label, TablePolicy(exec, static_cast<int>(blocks), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) { work(team, Index{team.league_rank()}); });
}

/// Calls work(number) for `blocks` blocks of arrays in host memory.
template <class Work>
void for_blocks(const char* label, HostCores, Index blocks, const Work& work) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const Host host;
  const Kokkos::RangePolicy<Host, Kokkos::IndexType<Index>> all(host, 0, blocks);
  Kokkos::parallel_for(label, all, [=](Index number) { work(number); });
  host.fence(label);
}

/// Calls work(team, begin, count) for the blocks of elements [0, n) in device memory.
template <class Work>
void for_element_blocks(const char* label, const Execution& exec, Index n, const Work& work) {
  for_blocks(
      label, exec, ceil_div(n, element_block), KOKKOS_LAMBDA(const Team& team, Index number) {
        // Copies the constant: min needs an address, which the constant lacks in device code.
        const Index begin = number * Index{element_block};
        work(team, begin, Kokkos::min(Index{element_block}, n - begin));
      });
}

/// Calls work(begin, count) for the blocks of elements [0, n) in host memory.
template <class Work>
void for_element_blocks(const char* label, HostCores cores, Index n, const Work& work) {
  for_blocks(label, cores, ceil_div(n, element_block), [=](Index number) {
    const Index begin = number * element_block;
    work(begin, std::min(Index{element_block}, n - begin));
  });
}

}  // namespace kzero::kernels
