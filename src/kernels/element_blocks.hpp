// Kernels over the elements of an array. Each team or host thread processes one block at a time.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

inline constexpr Index element_block = 4096;

/// Calls work(team, begin, count) for the blocks of elements [0, n) in device memory.
template <class Work>
void for_element_blocks(const char* label, const Execution& exec, Index n, const Work& work) {
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(ceil_div(n, element_block)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        // Copies the constant: min needs an address, which the constant lacks in device code.
        const Index begin = team.league_rank() * Index{element_block};
        work(team, begin, Kokkos::min(Index{element_block}, n - begin));
      });
}

/// Calls work(begin, count) for the blocks of elements [0, n) on the host's cores, whatever the
/// build's device. Returns when all are done.
template <class Work>
void for_element_blocks_on_host(const char* label, Index n, const Work& work) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const Host host;
  const Kokkos::RangePolicy<Host, Kokkos::IndexType<Index>> blocks(host, 0,
                                                                   ceil_div(n, element_block));
  Kokkos::parallel_for(label, blocks, [=](Index number) {
    const Index begin = number * element_block;
    work(begin, std::min(Index{element_block}, n - begin));
  });
  host.fence(label);
}

}  // namespace kzero::kernels
