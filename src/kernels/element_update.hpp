// The kernel of elementwise optimizers. It updates several parameters, each by its own rule. A rule
// is a struct with
//   static constexpr int arrays                 state arrays, including the master weights
//   KOKKOS_INLINE_FUNCTION void operator()(float gradient, float (&state)[arrays]) const
// where state[0] is the master weight. All state is updated in fp32. The rule may have
//   KOKKOS_INLINE_FUNCTION static constexpr bool writes(int array)
// which is false for arrays that the rule does not change. If it does not change the master
// weights, the parameters are not written either. Where elements begin depends on stage and ranks,
// and compilers may fuse the products of a vector body and of its remainder differently. A rule
// therefore uses Kokkos::fma to fix which product of a sum is fused.
#pragma once

#include <utility>

#include "kernels/element_blocks.hpp"
#include "kernels/launch_table.hpp"

namespace kzero::kernels {

/// The arrays of an update, n elements each: the gradient; the state, updated in fp32, master
/// weights first; and the weights rounded to T. In an fp32 run the latter are the master weights
/// themselves.
template <class T, int arrays>
struct UpdateArrays {
  const T* gradient = nullptr;
  float* state[arrays] = {};
  T* parameters = nullptr;

  KOKKOS_INLINE_FUNCTION UpdateArrays operator+(Index n) const {
    UpdateArrays later = *this;
    later.gradient += n;
    for (int a = 0; a < arrays; ++a) later.state[a] += n;
    later.parameters += n;
    return later;
  }
};

/// Returns the factor on a weight for its decay: `kept`, or 1 for a cautious rule if the step that
/// will be subtracted moves the weight away from 0 (Chen et al., arXiv 2510.12402).
KOKKOS_INLINE_FUNCTION float kept_of(float kept, bool cautious, float step, float weight) {
  const float of_leaving = cautious ? 1.0F : kept;
  return ((step > 0) & (weight < 0)) | ((step < 0) & (weight > 0)) ? of_leaving : kept;
}

namespace detail {

template <class Rule>
KOKKOS_INLINE_FUNCTION constexpr bool writes(int array) {
  if constexpr (requires { Rule::writes(0); }) {
    return Rule::writes(array);
  } else {
    return true;
  }
}

/// Updates element i. Arrays have constant indices, so that compilers keep the state in registers.
template <class T, class Rule, std::size_t... a>
KOKKOS_INLINE_FUNCTION void update_element(const Rule& rule,
                                           const UpdateArrays<T, Rule::arrays>& at, Index i,
                                           std::index_sequence<a...>) {
  float state[] = {at.state[a][i]...};
  rule(static_cast<float>(at.gradient[i]), state);
  ((writes<Rule>(a) ? void(at.state[a][i] = state[a]) : void()), ...);
  if constexpr (writes<Rule>(0)) at.parameters[i] = static_cast<T>(state[0]);
}

template <int count, class T, class Rule>
KOKKOS_INLINE_FUNCTION void update_pack(const Rule& rule, const UpdateArrays<T, Rule::arrays>& at) {
  const auto gradient = read_pack<count>(at.gradient);
  Pack<float, count> state[Rule::arrays];
  for (int a = 0; a < Rule::arrays; ++a)
    state[a] = read_pack<count>(static_cast<const float*>(at.state[a]));
  Pack<T, count> rounded;
  for (int e = 0; e < count; ++e) {
    float element[Rule::arrays];
    for (int a = 0; a < Rule::arrays; ++a) element[a] = state[a].values[e];
    rule(static_cast<float>(gradient.values[e]), element);
    for (int a = 0; a < Rule::arrays; ++a) state[a].values[e] = element[a];
    rounded.values[e] = static_cast<T>(element[0]);
  }
  for (int a = 0; a < Rule::arrays; ++a) {
    if (writes<Rule>(a)) write_pack(at.state[a], state[a]);
  }
  if constexpr (writes<Rule>(0)) write_pack(at.parameters, rounded);
}

/// Updates n elements on a device. Moves 16 bytes of fp32 at once where an array is 16-byte
/// aligned. `threads` is the team, or the lanes of one of its threads.
template <class T, class Threads, class Rule>
KOKKOS_INLINE_FUNCTION void device_update(const Threads& threads, const Rule& rule, Index n,
                                          const UpdateArrays<T, Rule::arrays>& arrays) {
  constexpr int count = 4;
  const Index packs = n / count, done = packs * count;
  device_for(threads, packs, [&](Index pack) { update_pack<count>(rule, arrays + pack * count); });
  device_for(threads, n - done, [&](Index i) { update_pack<1>(rule, arrays + (done + i)); });
}

/// Updates n elements one by one, because compilers do not vectorize packs.
template <class T, class Rule>
void host_update(const Rule& rule, Index n, const UpdateArrays<T, Rule::arrays>& arrays) {
  host_for(n, [rule, arrays](Index i) {
    update_element(rule, arrays, i, std::make_index_sequence<Rule::arrays>());
  });
}

template <class T, class Threads, class Rule>
KOKKOS_INLINE_FUNCTION void team_update(const Threads& threads, const Rule& rule, Index n,
                                        const UpdateArrays<T, Rule::arrays>& arrays) {
  if constexpr (tensor::on_host) {
    host_update(rule, n, arrays);
  } else {
    device_update(threads, rule, n, arrays);
  }
}

}  // namespace detail

/// The parameters that one launch updates at most. A block of a transformer has about a dozen.
inline constexpr int update_parts_at_once = 16;

/// Elements of one parameter and their rule.
template <class T, class Rule>
struct UpdatePart {
  Rule rule;
  UpdateArrays<T, Rule::arrays> arrays;
  Index count = 0;

  Index blocks() const { return ceil_div(count, element_block); }

  template <class Where>
  static void launch(const Where& where, const LaunchTable<UpdatePart, update_parts_at_once>& t) {
    update_parts(where, t);
  }

  KOKKOS_INLINE_FUNCTION Index elements_of_block(Index begin) const {
    return Kokkos::min(Index{element_block}, count - begin);
  }
};

template <class T, class Rule>
using UpdateTable = LaunchTable<UpdatePart<T, Rule>, update_parts_at_once>;
template <class T, class Rule, class Where>
using UpdateBatch = LaunchBatch<UpdatePart<T, Rule>, update_parts_at_once, Where>;

/// Updates all elements of a table whose arrays are in device memory.
template <class T, class Rule>
void update_parts(const Execution& exec, const UpdateTable<T, Rule>& table) {
  const UpdateTable<T, Rule> t = table;
  for_blocks(
      "kzero::kernels::update_elements", exec, t.blocks(),
      KOKKOS_LAMBDA(const Team& team, Index number) {
        const int which = t.part_of(number);
        const UpdatePart<T, Rule>& part = t.part(which);
        const Index begin = (number - t.first_block(which)) * Index{element_block};
        detail::team_update(team, part.rule, part.elements_of_block(begin), part.arrays + begin);
      });
}

/// Updates all elements of a table whose arrays are in host memory.
template <class T, class Rule>
void update_parts(HostCores cores, const UpdateTable<T, Rule>& table) {
  for_blocks("kzero::kernels::update_elements_on_host", cores, table.blocks(), [&](Index number) {
    const int which = table.part_of(number);
    const UpdatePart<T, Rule>& part = table.part(which);
    const Index begin = (number - table.first_block(which)) * element_block;
    detail::host_update(part.rule, part.elements_of_block(begin), part.arrays + begin);
  });
}

/// Updates elements [0, count) of arrays in the memory of `where`.
template <class T, class Where, class Rule>
void update_elements(const Where& where, const Rule& rule,
                     const UpdateArrays<T, Rule::arrays>& arrays, Index count) {
  UpdateBatch<T, Rule, Where> batch(where);
  batch.add({rule, arrays, count});
  batch.run();
}

}  // namespace kzero::kernels
