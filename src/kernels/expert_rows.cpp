#include "kernels/expert_rows.hpp"

#include <algorithm>
#include <type_traits>

namespace kzero::kernels {

namespace {

/// Elements that a device's thread moves at once.
template <class T>
[[maybe_unused]] inline constexpr int row_pack = static_cast<int>(16 / sizeof(T));

/// Calls f(number of elements as a constant, first element) for all packs of a row.
template <class T, class F>
KOKKOS_INLINE_FUNCTION void for_row_packs(const Team& team, Index width, const F& f) {
  const Index packs = width / row_pack<T>, done = packs * row_pack<T>;
  detail::device_for(team, packs, [&](Index pack) {
    f(std::integral_constant<int, row_pack<T>>(), pack * row_pack<T>);
  });
  detail::device_for(team, width - done,
                     [&](Index j) { f(std::integral_constant<int, 1>(), done + j); });
}

template <class T>
KOKKOS_INLINE_FUNCTION void copy_row(const Team& team, Index width, const T* from, T* to) {
  if constexpr (tensor::on_host) {
    std::copy_n(from, width, to);
  } else {
    for_row_packs<T>(team, width, [=](auto count, Index j) {
      write_pack(to + j, read_pack<decltype(count)::value>(from + j));
    });
  }
}

/// What the rows of combine_rows read.
template <class T>
struct Combination {
  const T* sorted;
  const std::int32_t* places;  // null: each row its own
  const float* gates;          // null if all are 1
  const T* addend;             // null if there is none
  Index width, chosen;

  /// The sum of a row's elements from `column` on. load(from) is a vector of them, and `sum` one of
  /// zeros.
  template <class V, class Load>
  KOKKOS_INLINE_FUNCTION V sum_of_row(Index row, Index column, V sum, const Load& load) const {
    if (addend != nullptr) sum = load(addend + row * width + column);
    for (Index choice = row * chosen; choice < (row + 1) * chosen; ++choice) {
      const Index place = places == nullptr ? choice : places[choice];
      const V term = load(sorted + place * width + column);
      sum += gates == nullptr ? term : gates[choice] * term;
    }
    return sum;
  }
};

template <class T>
void host_combine(const Combination<T>& of, Index row, T* out) {
  detail::for_vectors(
      of.width,
      [&](Index j) {
        store_rounded(out + j, of.sum_of_row(row, j, HostVector{},
                                             [](const T* from) { return load_widened(from); }));
      },
      [&](Index j, Index count) {
        const auto load = [=](const T* from) { return detail::load_first(from, count); };
        detail::store_first(out + j, of.sum_of_row(row, j, HostVector{}, load), count);
      });
}

/// Elements in fp32 that a device's thread adds up.
template <int count>
struct Floats {
  float values[count] = {};

  template <class T>
  static KOKKOS_INLINE_FUNCTION Floats of(const Pack<T, count>& pack) {
    Floats x;
    for (int e = 0; e < count; ++e) x.values[e] = static_cast<float>(pack.values[e]);
    return x;
  }
  KOKKOS_INLINE_FUNCTION Floats& operator+=(const Floats& other) {
    for (int e = 0; e < count; ++e) values[e] += other.values[e];
    return *this;
  }
  friend KOKKOS_INLINE_FUNCTION Floats operator*(float factor, Floats x) {
    for (float& value : x.values) value *= factor;
    return x;
  }
};

template <class T>
KOKKOS_INLINE_FUNCTION void device_combine(const Team& team, const Combination<T>& of, Index row,
                                           T* out) {
  for_row_packs<T>(team, of.width, [=](auto constant, Index j) {
    constexpr int count = decltype(constant)::value;
    const auto load = [](const T* from) { return Floats<count>::of(read_pack<count>(from)); };
    const Floats<count> sum = of.sum_of_row(row, j, Floats<count>{}, load);
    Pack<T, count> rounded;
    for (int e = 0; e < count; ++e) rounded.values[e] = static_cast<T>(sum.values[e]);
    write_pack(out + j, rounded);
  });
}

template <class T>
KOKKOS_INLINE_FUNCTION void combine_row(const Team& team, const Combination<T>& of, Index row,
                                        T* out) {
  if constexpr (tensor::on_host) {
    host_combine(of, row, out);
  } else {
    device_combine(team, of, row, out);
  }
}

}  // namespace

template <class T>
void gather_rows(const Execution& exec, Matrix<const T> x, Vector<const std::int32_t> choices,
                 Index per_token, Matrix<T> sorted) {
  const Index width = sorted.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::gather_rows", Policy(exec, static_cast<int>(sorted.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index r = team.league_rank(), choice = choices(r);
        T* out = &sorted(r, 0);
        if (choice < 0) {
          for_each(team, width, [=](Index j) { out[j] = static_cast<T>(0.0F); });
        } else {
          copy_row(team, width, &x(choice / per_token, 0), out);
        }
      });
}

template <class T>
void combine_rows(const Execution& exec, Matrix<const T> sorted, Matrix<const std::int32_t> places,
                  Matrix<const float> gates, Matrix<const T> addend, Matrix<T> y) {
  const Combination<T> of{sorted.data(),
                          places.data(),
                          gates.data(),
                          addend.data(),
                          static_cast<Index>(y.extent(1)),
                          places.size() > 0 ? static_cast<Index>(places.extent(1)) : 1};
  Kokkos::parallel_for(
      "kzero::kernels::combine_rows", Policy(exec, static_cast<int>(y.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        combine_row(team, of, i, &y(i, 0));
      });
}

template <class T>
void gate_backward(const Execution& exec, Vector<const std::int32_t> choices,
                   Matrix<const float> gates, Matrix<T> activated, Matrix<T> d,
                   Matrix<float> dgates) {
  const Index width = activated.extent(1);
  const float* gate_of = gates.data();
  float* dgate_of = dgates.data();
  const std::int32_t* choice_of = choices.data();
  Kokkos::parallel_for(
      "kzero::kernels::gate_backward",
      Policy(exec, static_cast<int>(activated.extent(0)), team_size(4), vector_length(32)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index r = team.league_rank(), choice = choice_of == nullptr ? r : choice_of[r];
        if (choice < 0) return;
        T *a = &activated(r, 0), *dy = &d(r, 0);
        const float dgate = sum_of(
            team, width, [](float x, float y) { return x * y; }, static_cast<const T*>(a),
            static_cast<const T*>(dy));
        Kokkos::single(Kokkos::PerTeam(team), [&] { dgate_of[choice] = dgate; });
        const float gate = gate_of[choice];
        const auto weigh = [=](auto x, auto y) { return Pair<decltype(x)>{x * gate, y * gate}; };
        map_pairs(team, width, a, dy, weigh, static_cast<const T*>(a), static_cast<const T*>(dy));
      });
}

#define KZERO_INSTANTIATE(T)                                                                   \
  template void gather_rows<T>(const Execution&, Matrix<const T>, Vector<const std::int32_t>,  \
                               Index, Matrix<T>);                                              \
  template void combine_rows<T>(const Execution&, Matrix<const T>, Matrix<const std::int32_t>, \
                                Matrix<const float>, Matrix<const T>, Matrix<T>);              \
  template void gate_backward<T>(const Execution&, Vector<const std::int32_t>,                 \
                                 Matrix<const float>, Matrix<T>, Matrix<T>, Matrix<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
