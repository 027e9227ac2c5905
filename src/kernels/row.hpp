// Helpers for kernels that process one row with a team. On a device the team's threads split the
// row. On a host one thread processes it in loops that compilers vectorize. Sums have a fixed order
// on both, so a result does not depend on the number of threads.
#pragma once

#include <algorithm>

#include "kernels/host/arithmetic.hpp"
#include "kernels/pack.hpp"
#include "kernels/team.hpp"
#include "tensor/view.hpp"

namespace kzero::kernels {

using tensor::Execution;
using tensor::Matrix;
using tensor::Vector;

/// The lanes of one thread of a team. sum_of, map and map_pairs accept them instead of a team, for
/// kernels that give each thread its own row.
struct Lanes {
  const Team& team;
};

template <class V>
struct Pair {
  V first, second;
};

namespace detail {

inline constexpr int lanes = 32;

template <class F>
void host_for(Index n, const F& f) {
#pragma omp simd
  for (Index i = 0; i < n; ++i) f(i);
}

template <class F>
float host_sum(Index n, const F& f) {
  float partial[lanes] = {};
  const Index whole = n / lanes * lanes;
  for (Index i = 0; i < whole; i += lanes) {
#pragma omp simd
    for (int j = 0; j < lanes; ++j) partial[j] += f(i + j);
  }
  for (Index i = whole; i < n; ++i) partial[i - whole] += f(i);
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) partial[j] += partial[j + half];
  }
  return partial[0];
}

/// The sum of f(i) for i = 0, host_lanes, ... below n, a multiple of `lanes`. f(i) is the vector of
/// elements from i on. Adds in host_sum's order.
template <class F>
float sum_vectors(Index n, const F& f) {
  constexpr int vectors = lanes / host_lanes;
  HostVector partial[vectors] = {};
  for (Index i = 0; i < n; i += lanes) {
    for (int v = 0; v < vectors; ++v) partial[v] += f(i + v * host_lanes);
  }
  float values[lanes];
  for (int v = 0; v < vectors; ++v) store_vector(values + v * host_lanes, partial[v]);
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) values[j] += values[j + half];
  }
  return values[0];
}

template <class F>
float host_max(Index n, const F& f) {
  float partial[lanes];
  for (float& value : partial) value = -Kokkos::Experimental::infinity_v<float>;
  const Index whole = n / lanes * lanes;
  for (Index i = 0; i < whole; i += lanes) {
#pragma omp simd
    for (int j = 0; j < lanes; ++j) {
      const float value = f(i + j);
      partial[j] = value > partial[j] ? value : partial[j];
    }
  }
  for (Index i = whole; i < n; ++i) partial[0] = Kokkos::fmax(partial[0], f(i));
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j)
      partial[j] = partial[j + half] > partial[j] ? partial[j + half] : partial[j];
  }
  return partial[0];
}

}  // namespace detail

/// Calls f(i) for i in [0,n), in any order.
template <class F>
KOKKOS_INLINE_FUNCTION void for_each(const Team& team, Index n, const F& f) {
  if constexpr (tensor::on_host) {
    detail::host_for(n, f);
  } else {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, n), f);
  }
}

/// Returns the fp32 sum of f(i) over [0,n), on every thread of the team.
template <class F>
KOKKOS_INLINE_FUNCTION float sum(const Team& team, Index n, const F& f) {
  if constexpr (tensor::on_host) {
    return detail::host_sum(n, f);
  } else {
    float total = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, n), [&](Index i, float& partial) { partial += f(i); }, total);
    return total;
  }
}

/// Returns the largest f(i) over [0,n) on every thread of the team. Minus infinity for n = 0.
template <class F>
KOKKOS_INLINE_FUNCTION float max(const Team& team, Index n, const F& f) {
  if constexpr (tensor::on_host) {
    return detail::host_max(n, f);
  } else {
    float largest = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, n),
        [&](Index i, float& partial) { partial = Kokkos::fmax(partial, f(i)); },
        Kokkos::Max<float>(largest));
    return largest;
  }
}

namespace detail {

template <class F>
KOKKOS_INLINE_FUNCTION void device_for(const Team& team, Index n, const F& f) {
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, n), f);
}

template <class F>
KOKKOS_INLINE_FUNCTION void device_for(const Lanes& thread, Index n, const F& f) {
  Kokkos::parallel_for(Kokkos::ThreadVectorRange(thread.team, n), f);
}

template <class F>
KOKKOS_INLINE_FUNCTION void device_reduce(const Team& team, Index n, const F& f, float& total) {
  Kokkos::parallel_reduce(Kokkos::TeamVectorRange(team, n), f, total);
}

template <class F>
KOKKOS_INLINE_FUNCTION void device_reduce(const Lanes& thread, Index n, const F& f, float& total) {
  Kokkos::parallel_reduce(Kokkos::ThreadVectorRange(thread.team, n), f, total);
}

template <int count, class Threads, class Out, class F, class... In>
KOKKOS_INLINE_FUNCTION void map_packs(const Threads& threads, Index packs, Out* out, const F& f,
                                      const In*... in) {
  device_for(threads, packs, [&](Index pack) {
    const auto results = [&](const Pack<In, count>... x) {
      Pack<Out, count> y;
      for (int e = 0; e < count; ++e)
        y.values[e] = static_cast<Out>(f(static_cast<float>(x.values[e])...));
      return y;
    };
    write_pack(out + pack * count, results(read_pack<count>(in + pack * count)...));
  });
}

/// Implements map for devices. Moves 16 bytes at once where an array is 16-byte aligned.
template <class Threads, class Out, class F, class... In>
KOKKOS_INLINE_FUNCTION void device_map(const Threads& threads, Index n, Out* out, const F& f,
                                       const In*... in) {
  constexpr int count = static_cast<int>(16 / std::min({sizeof(Out), sizeof(In)...}));
  const Index packs = n / count, done = packs * count;
  map_packs<count>(threads, packs, out, f, in...);
  map_packs<1>(threads, n - done, out + done, f, (in + done)...);
}

template <int count, class Threads, class Out, class F, class... In>
KOKKOS_INLINE_FUNCTION void map_pair_packs(const Threads& threads, Index packs, Out* first,
                                           Out* second, const F& f, const In*... in) {
  device_for(threads, packs, [&](Index pack) {
    Pack<Out, count> y, z;
    const auto compute = [&](const Pack<In, count>... x) {
      for (int e = 0; e < count; ++e) {
        const auto results = f(static_cast<float>(x.values[e])...);
        y.values[e] = static_cast<Out>(results.first);
        z.values[e] = static_cast<Out>(results.second);
      }
    };
    compute(read_pack<count>(in + pack * count)...);
    write_pack(first + pack * count, y);
    write_pack(second + pack * count, z);
  });
}

template <class Threads, class Out, class F, class... In>
KOKKOS_INLINE_FUNCTION void device_map_pairs(const Threads& threads, Index n, Out* first,
                                             Out* second, const F& f, const In*... in) {
  constexpr int count = static_cast<int>(16 / std::min({sizeof(Out), sizeof(In)...}));
  const Index packs = n / count, done = packs * count;
  map_pair_packs<count>(threads, packs, first, second, f, in...);
  map_pair_packs<1>(threads, n - done, first + done, second + done, f, (in + done)...);
}

template <int count, class Threads, class F, class... In>
KOKKOS_INLINE_FUNCTION float sum_packs(const Threads& threads, Index packs, const F& f,
                                       const In*... in) {
  float total = 0;
  device_reduce(
      threads, packs,
      [&](Index pack, float& partial) {
        const auto add = [&](const Pack<In, count>... x) {
          for (int e = 0; e < count; ++e) partial += f(static_cast<float>(x.values[e])...);
        };
        add(read_pack<count>(in + pack * count)...);
      },
      total);
  return total;
}

/// Implements sum_of for devices. Loads 16 bytes at once where an array is 16-byte aligned.
template <class Threads, class F, class... In>
KOKKOS_INLINE_FUNCTION float device_sum(const Threads& threads, Index n, const F& f,
                                        const In*... in) {
  constexpr int count = static_cast<int>(16 / std::min({sizeof(In)...}));
  const Index packs = n / count, done = packs * count;
  const float total = sum_packs<count>(threads, packs, f, in...);
  return done == n ? total : total + sum_packs<1>(threads, n - done, f, (in + done)...);
}

}  // namespace detail

/// Returns the fp32 sum of f(in[i]...) over [0,n) on every thread of the team, or on every lane.
template <class Threads, class F, class... In>
KOKKOS_INLINE_FUNCTION float sum_of(const Threads& threads, Index n, const F& f, const In*... in) {
  if constexpr (tensor::on_host) {
    return detail::host_sum(n, [=](Index i) { return f(static_cast<float>(in[i])...); });
  } else {
    return detail::device_sum(threads, n, f, in...);
  }
}

/// Sets out[i] = f(in[i]...) in fp32 for i in [0,n), in any order. An input may be the output. f is
/// called with floats on devices and with vectors of floats on hosts.
template <class Threads, class Out, class F, class... In>
KOKKOS_INLINE_FUNCTION void map(const Threads& threads, Index n, Out* out, const F& f,
                                const In*... in) {
  if constexpr (tensor::on_host) {
    detail::map_vectors(n, out, f, in...);
  } else {
    detail::device_map(threads, n, out, f, in...);
  }
}

/// Sets first[i] and second[i] to the two results of f(in[i]...), a Pair, like map. Inputs may be
/// outputs.
template <class Threads, class Out, class F, class... In>
KOKKOS_INLINE_FUNCTION void map_pairs(const Threads& threads, Index n, Out* first, Out* second,
                                      const F& f, const In*... in) {
  if constexpr (tensor::on_host) {
    detail::map_pair_vectors(n, first, second, f, in...);
  } else {
    detail::device_map_pairs(threads, n, first, second, f, in...);
  }
}

}  // namespace kzero::kernels
