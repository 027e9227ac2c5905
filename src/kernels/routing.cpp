#include "kernels/routing.hpp"

#include "kernels/sigmoid.hpp"

namespace kzero::kernels {

namespace {

Policy row_of_experts(const Execution& exec, std::size_t rows) {
  return {exec, static_cast<int>(rows), team_size(1), vector_length(32)};
}

/// The scores of a row, p. Both passes compute them in the same way.
struct Router {
  const float* logits;
  bool is_sigmoid;
  float largest, total;  // of softmax

  KOKKOS_INLINE_FUNCTION Router(const Team& team, Index experts, const float* of_row, bool sigmoid)
      : logits(of_row), is_sigmoid(sigmoid), largest(0), total(1) {
    if (is_sigmoid) return;
    largest = max(team, experts, [=](Index e) { return of_row[e]; });
    const float shift = largest;
    total = sum(team, experts, [=](Index e) { return exponential(of_row[e] - shift); });
  }

  KOKKOS_INLINE_FUNCTION float score(Index e) const {
    if (!is_sigmoid) return exponential(logits[e] - largest) / total;
    return Sigmoid(logits[e]).value;
  }
  KOKKOS_INLINE_FUNCTION float log_z() const { return largest + Kokkos::log(total); }
};

/// What the choice of experts compares.
template <class T>
struct Biased {
  Router router;
  const T* bias;  // or null

  KOKKOS_INLINE_FUNCTION float operator()(Index e) const {
    const float score = router.score(e);
    return bias == nullptr ? score : score + static_cast<float>(bias[e]);
  }
};

/// An expert's place in the order of choice: greater for a larger value, and for a lower number.
/// NaN comes first. Never 0.
KOKKOS_INLINE_FUNCTION std::uint64_t rank_of_expert(float value, Index e) {
  constexpr std::uint32_t sign = 0x80000000U;
  const auto bits = Kokkos::bit_cast<std::uint32_t>(value + 0.0F);  // no -0
  std::uint32_t ordered = (bits & sign) != 0 ? ~bits : bits | sign;
  if (value != value) ordered = 0xFFFFFFFFU;
  return std::uint64_t{ordered} << 32U | (0xFFFFFFFFU - static_cast<std::uint32_t>(e));
}

KOKKOS_INLINE_FUNCTION Index expert_of_rank(std::uint64_t rank) {
  return static_cast<Index>(0xFFFFFFFFU - static_cast<std::uint32_t>(rank));
}

/// The greatest rank below `limit`, on every thread of the team.
template <class T>
[[maybe_unused]] KOKKOS_INLINE_FUNCTION std::uint64_t next_rank(const Team& team, Index experts,
                                                                const Biased<T>& biased,
                                                                std::uint64_t limit) {
  std::uint64_t found = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamVectorRange(team, experts),
      [&](Index e, std::uint64_t& best) {
        const std::uint64_t rank = rank_of_expert(biased(e), e);
        best = rank < limit && rank > best ? rank : best;
      },
      Kokkos::Max<std::uint64_t>(found));
  return found;
}

/// Computes the choices [k] of a row and their scores, and returns the sum of these. Finds one
/// choice after the other, as teams have no memory for all scores.
template <class T>
[[maybe_unused]] KOKKOS_INLINE_FUNCTION float device_choose(const Team& team, Index experts,
                                                            const Biased<T>& biased, Index chosen,
                                                            std::int32_t* numbers, float* gates) {
  std::uint64_t rank = ~std::uint64_t{0};
  float total = 0;
  for (Index j = 0; j < chosen; ++j) {
    rank = next_rank(team, experts, biased, rank);
    const Index e = expert_of_rank(rank);
    const float score = biased.router.score(e);
    total += score;
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      numbers[j] = static_cast<std::int32_t>(e);
      gates[j] = score;
    });
  }
  return total;
}

/// The same on a host. Keeps the choices among the experts so far in order. `gates` has what they
/// are compared by meanwhile.
template <class T>
[[maybe_unused]] inline float host_choose(Index experts, const Biased<T>& biased, Index chosen,
                                          std::int32_t* numbers, float* gates) {
  constexpr Index block = detail::lanes;
  for (Index first = 0; first < experts; first += block) {
    const Index count = Kokkos::min(block, experts - first);
    float value[block];
    detail::host_for(count, [&](Index j) { value[j] = biased(first + j); });
    for (Index j = 0; j < count; ++j) {
      Index place = Kokkos::min(first + j, chosen);
      for (; place > 0 && gates[place - 1] < value[j]; --place) {
        if (place < chosen) {
          gates[place] = gates[place - 1];
          numbers[place] = numbers[place - 1];
        }
      }
      if (place < chosen) {
        gates[place] = value[j];
        numbers[place] = static_cast<std::int32_t>(first + j);
      }
    }
  }
  float total = 0;
  for (Index j = 0; j < chosen; ++j) {
    if (biased.bias != nullptr) gates[j] = biased.router.score(numbers[j]);
    total += gates[j];
  }
  return total;
}

template <class Threads, class T>
KOKKOS_INLINE_FUNCTION float choose_of_row(const Threads& team, Index experts,
                                           const Biased<T>& biased, Index chosen,
                                           std::int32_t* numbers, float* gates) {
  if constexpr (tensor::on_host) {
    return host_choose(experts, biased, chosen, numbers, gates);
  } else {
    return device_choose(team, experts, biased, chosen, numbers, gates);
  }
}

/// The columns of logits but that of a shared expert.
Index experts_of(Matrix<const float> logits, const Choices& choices) {
  const auto columns = static_cast<Index>(logits.extent(1));
  return choices.shared.size() > 0 ? columns - 1 : columns;
}

}  // namespace

template <class T>
void choose_experts(const Execution& exec, Matrix<const float> logits, const Scoring& scoring,
                    const T* bias, const Choices& choices) {
  const Index experts = experts_of(logits, choices), chosen = choices.experts.extent(1);
  const Matrix<std::int32_t> numbers = choices.experts;
  const Matrix<float> gates = choices.gates;
  float* const shared = choices.shared.size() > 0 ? choices.shared.data() : nullptr;
  Kokkos::parallel_for(
      "kzero::kernels::choose_experts", row_of_experts(exec, logits.extent(0)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        const Biased<T> biased{Router(team, experts, &logits(i, 0), scoring.is_sigmoid), bias};
        const float total =
            choose_of_row(team, experts, biased, chosen, &numbers(i, 0), &gates(i, 0));
        Kokkos::single(Kokkos::PerTeam(team), [&] {
          if (shared != nullptr) shared[i] = Sigmoid(logits(i, experts)).value;
          if (!scoring.normalizes) return;
          for (Index j = 0; j < chosen; ++j) gates(i, j) /= total;
        });
      });
}

namespace {

KOKKOS_INLINE_FUNCTION Index padded_rows(Index count) {
  return (count + expert_block - 1) / expert_block * expert_block;
}

/// What the kernels of sort_choices read and write.
struct Sorting {
  const std::int32_t* experts;
  std::int32_t *places, *choices, *begin;
  Index count, of_experts, room;

  Sorting(Matrix<const std::int32_t> all, const SortedChoices& sorted)
      : experts(all.data()),
        places(sorted.places.data()),
        choices(sorted.choices.data()),
        begin(sorted.begin.data()),
        count(static_cast<Index>(all.size())),
        of_experts(static_cast<Index>(sorted.begin.extent(0)) - 1),
        room(static_cast<Index>(sorted.choices.extent(0))) {}

  KOKKOS_INLINE_FUNCTION void put(Index choice, Index place) const {
    places[choice] = static_cast<std::int32_t>(place);
    choices[place] = static_cast<std::int32_t>(choice);
  }
};

/// One thread counts and then places all choices. begin[e] is the next place of expert e meanwhile.
void host_sort(const Execution& exec, const Sorting& s) {
  Kokkos::parallel_for(
      "kzero::kernels::sort_choices", tensor::Range(exec, 0, 1), KOKKOS_LAMBDA(Index) {
        for (Index e = 0; e <= s.of_experts; ++e) s.begin[e] = 0;
        for (Index c = 0; c < s.count; ++c) ++s.begin[s.experts[c]];
        std::int32_t next = 0;
        for (Index e = 0; e <= s.of_experts; ++e) {
          const Index count = s.begin[e];
          s.begin[e] = next;
          next += static_cast<std::int32_t>(padded_rows(count));
        }
        for (Index r = 0; r < s.room; ++r) s.choices[r] = -1;
        for (Index c = 0; c < s.count; ++c) s.put(c, s.begin[s.experts[c]]++);
        for (Index e = s.of_experts; e > 0; --e)
          s.begin[e] = static_cast<std::int32_t>(padded_rows(s.begin[e - 1]));
        s.begin[0] = 0;
      });
}

// A device's team has an expert and reads all choices, in sections of neighbours.
constexpr int sections = 256;

using SectionCounts =
    Kokkos::View<std::int32_t[sections], Execution::scratch_memory_space, Kokkos::MemoryUnmanaged>;
using ExpertCounts =
    Kokkos::View<std::int32_t*, Execution::scratch_memory_space, Kokkos::MemoryUnmanaged>;

/// Counts an expert's choices, to begin.
void count_of_experts(const Execution& exec, const Sorting& s) {
  Kokkos::parallel_for(
      "kzero::kernels::count_of_experts",
      Policy(exec, static_cast<int>(s.of_experts), team_size(sections)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index e = team.league_rank();
        std::int32_t total = 0;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, s.count),
            [&](Index c, std::int32_t& own) { own += s.experts[c] == e ? 1 : 0; }, total);
        Kokkos::single(Kokkos::PerTeam(team), [&] { s.begin[e] = total; });
      });
}

/// Replaces the counts in begin by the first places.
void begin_of_experts(const Execution& exec, const Sorting& s) {
  Policy policy(exec, 1, team_size(sections));
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(ExpertCounts::shmem_size(
                                 static_cast<std::size_t>(s.of_experts)))));
  Kokkos::parallel_for(
      "kzero::kernels::begin_of_experts", policy, KOKKOS_LAMBDA(const Team& team) {
        const ExpertCounts counts(team.team_scratch(0), static_cast<std::size_t>(s.of_experts));
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, s.of_experts),
                             [&](Index e) { counts(e) = s.begin[e]; });
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, s.of_experts + 1), [&](Index e) {
          Index before = 0;
          for (Index other = 0; other < e; ++other) before += padded_rows(counts(other));
          s.begin[e] = static_cast<std::int32_t>(before);
        });
      });
}

/// Places an expert's choices. The last team marks the rows that are not in use.
void place_choices(const Execution& exec, const Sorting& s) {
  const Index section = ceil_div(s.count, Index{sections});
  Policy policy(exec, static_cast<int>(s.of_experts), team_size(sections));
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(SectionCounts::shmem_size())));
  Kokkos::parallel_for(
      "kzero::kernels::place_choices", policy, KOKKOS_LAMBDA(const Team& team) {
        const SectionCounts counts(team.team_scratch(0));
        const Index e = team.league_rank();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, int{sections}), [&](int part) {
          const Index end = Kokkos::min((part + 1) * section, s.count);
          std::int32_t found = 0;
          for (Index c = part * section; c < end; ++c) found += s.experts[c] == e ? 1 : 0;
          counts(part) = found;
        });
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, int{sections}), [&](int part) {
          const Index end = Kokkos::min((part + 1) * section, s.count);
          Index place = s.begin[e];
          for (int before = 0; before < part; ++before) place += counts(before);
          for (Index c = part * section; c < end; ++c) {
            if (s.experts[c] == e) s.put(c, place++);
          }
          if (part + 1 < sections) return;
          const Index past = e + 1 < s.of_experts ? s.begin[e + 1] : s.room;
          for (; place < past; ++place) s.choices[place] = -1;
        });
      });
}

}  // namespace

void sort_choices(const Execution& exec, Matrix<const std::int32_t> experts,
                  const SortedChoices& sorted) {
  const Sorting s(experts, sorted);
  if (tensor::on_host) {
    host_sort(exec, s);
    return;
  }
  count_of_experts(exec, s);
  begin_of_experts(exec, s);
  place_choices(exec, s);
}

namespace {

void host_count(const Execution& exec, Matrix<const std::int32_t> experts,
                const CountedRows& counted, Vector<std::int32_t> counts) {
  Kokkos::parallel_for(
      "kzero::kernels::count_choices", tensor::Range(exec, 0, 1), KOKKOS_LAMBDA(Index) {
        for (Index e = 0; e < static_cast<Index>(counts.extent(0)); ++e) counts(e) = 0;
        for (Index i = 0; i < static_cast<Index>(experts.extent(0)); ++i) {
          if (!counted(i)) continue;
          for (Index j = 0; j < static_cast<Index>(experts.extent(1)); ++j) ++counts(experts(i, j));
        }
      });
}

/// A team counts an expert.
void device_count(const Execution& exec, Matrix<const std::int32_t> experts,
                  const CountedRows& counted, Vector<std::int32_t> counts) {
  const Index all = static_cast<Index>(experts.size()), chosen = experts.extent(1);
  const std::int32_t* of_choice = experts.data();
  Kokkos::parallel_for(
      "kzero::kernels::count_choices",
      Policy(exec, static_cast<int>(counts.extent(0)), team_size(sections)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index e = team.league_rank();
        std::int32_t total = 0;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, all),
            [&](Index c, std::int32_t& own) {
              if (of_choice[c] == e && counted(c / chosen)) ++own;
            },
            total);
        Kokkos::single(Kokkos::PerTeam(team), [&] { counts(e) = total; });
      });
}

}  // namespace

void count_choices(const Execution& exec, Matrix<const std::int32_t> experts,
                   const CountedRows& counted, Vector<std::int32_t> counts) {
  if (tensor::on_host) {
    host_count(exec, experts, counted, counts);
  } else {
    device_count(exec, experts, counted, counts);
  }
}

template <class Sum>
void add_counts(const Execution& exec, Vector<const std::int32_t> counts, Vector<Sum> sums) {
  Kokkos::parallel_for(
      "kzero::kernels::add_counts", tensor::Range(exec, 0, static_cast<Index>(counts.extent(0))),
      KOKKOS_LAMBDA(Index e) { sums(e) += static_cast<Sum>(counts(e)); });
}

template void add_counts(const Execution&, Vector<const std::int32_t>, Vector<std::int64_t>);
template void add_counts(const Execution&, Vector<const std::int32_t>, Vector<std::uint64_t>);

namespace {

/// The gradient of a row's logits: p_e * (common + of_count * counts_e), and more for what the row
/// has chosen. With sigmoid both are 0.
struct LogitFactors {
  float common = 0, of_count = 0;
};

/// The part of the row's own losses, which only rows that count have: there are such rows.
KOKKOS_INLINE_FUNCTION LogitFactors gradient_of_losses(const Team& team, const Router& router,
                                                       Vector<const std::int32_t> counts,
                                                       Index chosen, const RouterLosses& losses) {
  const Index experts = counts.extent(0);
  std::int64_t all = 0;
  for (Index e = 0; e < experts; ++e) all += counts(e);
  const Index counted = all / chosen;
  const auto rows = static_cast<float>(counted);
  const float of_count =
      losses.balance * static_cast<float>(experts) / static_cast<float>(all) / rows;
  const float mean =
      sum(team, experts, [=](Index e) { return router.score(e) * static_cast<float>(counts(e)); });
  return {2 * losses.z / rows * router.log_z() - of_count * mean, of_count};
}

}  // namespace

template <class T>
void router_backward(const Execution& exec, Matrix<const float> logits, const Choices& choices,
                     Matrix<const float> dgates, Vector<const float> dshared,
                     const Scoring& scoring, const CountedRows& counted,
                     Vector<const std::int32_t> counts, const RouterLosses& losses,
                     Matrix<T> dlogits) {
  const Index experts = experts_of(logits, choices), chosen = choices.experts.extent(1);
  const Matrix<const std::int32_t> numbers = choices.experts;
  const Matrix<const float> gates = choices.gates;
  const float* const shared = choices.shared.size() > 0 ? choices.shared.data() : nullptr;
  const float* const of_shared = dshared.data();
  Kokkos::parallel_for(
      "kzero::kernels::router_backward", row_of_experts(exec, logits.extent(0)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        const Router router(team, experts, &logits(i, 0), scoring.is_sigmoid);
        const bool is_softmax = !scoring.is_sigmoid, normalizes = scoring.normalizes;
        LogitFactors row;
        if (is_softmax && counted(i))
          row = gradient_of_losses(team, router, counts, chosen, losses);
        const std::int32_t* number = &numbers(i, 0);
        const float *gate = &gates(i, 0), *dgate = &dgates(i, 0);
        float mean = 0;  // of the gates' gradients, by the gates
        for (Index j = 0; j < chosen; ++j) mean += gate[j] * dgate[j];
        if (is_softmax && !normalizes) row.common -= mean;
        T* d = &dlogits(i, 0);
        for_each(team, experts, [=](Index e) {
          const float own = row.common + row.of_count * static_cast<float>(counts(e));
          const float score = router.score(e), of_chosen = is_softmax ? 1 : 1 - score;
          float total = score * own;
          for (Index j = 0; j < chosen; ++j) {
            if (number[j] == e)
              total += of_chosen * gate[j] * (normalizes ? dgate[j] - mean : dgate[j]);
          }
          d[e] = static_cast<T>(total);
        });
        if (shared == nullptr) return;
        Kokkos::single(Kokkos::PerTeam(team), [&] {
          d[experts] = static_cast<T>(of_shared[i] * shared[i] * (1 - shared[i]));
        });
      });
}

void add_values(const Execution& exec, std::span<const float> values, float* to) {
  constexpr std::size_t block = 64;  // of kernel arguments
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const std::span<const float> part =
        values.subspan(begin, std::min(block, values.size() - begin));
    Kokkos::Array<float, block> added{};
    std::ranges::copy(part, added.data());
    float* const first = to + begin;
    Kokkos::parallel_for(
        "kzero::kernels::add_values", tensor::Range(exec, 0, std::ssize(part)),
        KOKKOS_LAMBDA(Index i) { first[i] += added[static_cast<std::size_t>(i)]; });
  }
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void choose_experts<T>(const Execution&, Matrix<const float>, const Scoring&, const T*, \
                                  const Choices&);                                                 \
  template void router_backward<T>(const Execution&, Matrix<const float>, const Choices&,          \
                                   Matrix<const float>, Vector<const float>, const Scoring&,       \
                                   const CountedRows&, Vector<const std::int32_t>,                 \
                                   const RouterLosses&, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
