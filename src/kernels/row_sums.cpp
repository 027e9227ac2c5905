#include "kernels/row_sums.hpp"

#include "base/error.hpp"

namespace kzero::kernels {

namespace {

// Devices sum groups in runs. A warp sums one run for 32 neighbouring columns (128 bytes per read),
// and the runs are then added in order. One thread per column would wait for hundreds of dependent
// reads.
constexpr int runs = 16, run_columns = 32;

template <class T>
KOKKOS_INLINE_FUNCTION void put(Accumulate accumulate, T& target, float total) {
  target =
      static_cast<T>((accumulate == Accumulate::yes ? static_cast<float>(target) : 0.0F) + total);
}

/// The results of sum_groups. Blocks of columns are numbered through all of them.
template <class T>
struct GroupSums {
  T* out[max_sums] = {};
  int count = 0;
  Index width;

  explicit GroupSums(Results<T> results) : width(static_cast<Index>(results.begin()->extent(0))) {
    KZERO_EXPECT(results.size() <= max_sums);
    for (const Vector<T>& result : results) out[count++] = result.data();
  }

  KOKKOS_INLINE_FUNCTION T* result(int number) const {
    T* found = out[0];
    for (int n = 1; n < max_sums; ++n) found = n == number ? out[n] : found;
    return found;
  }
};

template <class T>
void host_sum_groups(const Execution& exec, Matrix<const float> partial, Accumulate accumulate,
                     const GroupSums<T>& sums) {
  constexpr Index block = 256;  // columns per team, whose sums stay in the first-level cache
  const Index groups = partial.extent(0), width = sums.width, stride = partial.extent(1);
  const Index blocks = ceil_div(width, block);
  Kokkos::parallel_for(
      "kzero::kernels::sum_groups",
      Policy(exec, static_cast<int>(sums.count * blocks), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index number = team.league_rank() / blocks;
        const Index begin = team.league_rank() % blocks * block;
        const float* from = partial.data() + number * width;
        T* target = sums.result(static_cast<int>(number)) + begin;
        for_each(team, Kokkos::min(Index{block}, width - begin), [=](Index j) {
          float total = 0;
          for (Index g = 0; g < groups; ++g) total += from[g * stride + begin + j];
          put(accumulate, target[j], total);
        });
      });
}

template <class T>
void device_sum_groups(const Execution& exec, Matrix<const float> partial, Accumulate accumulate,
                       const GroupSums<T>& results) {
  const Index groups = partial.extent(0), width = results.width, stride = partial.extent(1);
  const Index run = ceil_div(groups, runs), blocks = ceil_div(width, run_columns);
  using Sums = Kokkos::View<float[runs][run_columns], Execution::scratch_memory_space,
                            Kokkos::MemoryUnmanaged>;
  Policy policy(exec, static_cast<int>(results.count * blocks), team_size(runs),
                vector_length(run_columns));
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(Sums::shmem_size())));
  Kokkos::parallel_for(
      "kzero::kernels::sum_groups_in_runs", policy, KOKKOS_LAMBDA(const Team& team) {
        const Sums sums(team.team_scratch(0));
        const Index number = team.league_rank() / blocks;
        const Index begin = team.league_rank() % blocks * run_columns;
        const Index columns = Kokkos::min(Index{run_columns}, width - begin);
        const float* from = partial.data() + number * width + begin;
        T* target = results.result(static_cast<int>(number)) + begin;
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, runs), [&](int r) {
          const Index end = Kokkos::min(groups, (r + 1) * run);
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, columns), [&](Index j) {
            float total = 0;
            for (Index g = r * run; g < end; ++g) total += from[g * stride + j];
            sums(r, j) = total;
          });
        });
        team.team_barrier();
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, columns), [&](Index j) {
          float total = 0;
          for (int r = 0; r < runs; ++r) total += sums(r, j);
          put(accumulate, target[j], total);
        });
      });
}

/// Computes total[j] = the sum over `count` rows, row by row in memory order.
template <class T>
KOKKOS_INLINE_FUNCTION void add_rows(const Team& team, const T* rows, Index count, Index width,
                                     float* total) {
  for_each(team, width, [=](Index j) { total[j] = 0; });
  for (Index i = 0; i < count; ++i) {
    const T* row = rows + i * width;
    for_each(team, width, [=](Index j) { total[j] += static_cast<float>(row[j]); });
  }
}

}  // namespace

template <class T>
void sum_groups(const Execution& exec, Matrix<const float> partial, Accumulate accumulate,
                Results<T> results) {
  const GroupSums<T> sums(results);
  if constexpr (tensor::on_host) {
    host_sum_groups(exec, partial, accumulate, sums);
  } else {
    device_sum_groups(exec, partial, accumulate, sums);
  }
}

namespace {

template <class T>
void host_sum_rows(const Execution& exec, Matrix<const T> x, Matrix<float> partial) {
  const Index rows = x.extent(0), width = x.extent(1), group = ceil_div(rows, row_groups);
  Kokkos::parallel_for(
      "kzero::kernels::sum_rows", Policy(exec, static_cast<int>(row_groups), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index first = team.league_rank() * group;
        const Index count = Kokkos::max(Index{0}, Kokkos::min(group, rows - first));
        add_rows(team, x.data() + first * width, count, width, &partial(team.league_rank(), 0));
      });
}

/// Sums in registers, with one pack of columns per thread.
template <int pack, class T>
void device_sum_rows(const Execution& exec, Matrix<const T> x, Matrix<float> partial) {
  constexpr int threads = 128;
  const Index rows = x.extent(0), width = x.extent(1), group = ceil_div(rows, row_groups);
  const Index packs = width / pack, blocks = ceil_div(packs, Index{threads});
  Kokkos::parallel_for(
      "kzero::kernels::sum_rows",
      Policy(exec, static_cast<int>(row_groups * blocks), team_size(threads)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index number = team.league_rank() / blocks;
        const Index first_pack = team.league_rank() % blocks * threads;
        const Index begin = Kokkos::min(number * group, rows);
        const Index end = Kokkos::min(begin + group, rows);
        const Index count = Kokkos::min(Index{threads}, packs - first_pack);
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count), [&](Index own) {
          const Index j = (first_pack + own) * pack;
          const auto row = [=](Index i) { return Pack<T, pack>::at(&x(i, j)); };
          write_pack(&partial(number, j), sum_of_packs<8, pack>(begin, end, row));
        });
      });
}

}  // namespace

template <class T, class Out>
void sum_rows(const Execution& exec, Matrix<const T> x, Accumulate accumulate, Vector<Out> out,
              Matrix<float> partial) {
  constexpr int pack = 16 / sizeof(T);
  if constexpr (tensor::on_host) {
    host_sum_rows(exec, x, partial);
  } else if (x.extent(1) % pack == 0 && begin_packs(x.data())) {
    device_sum_rows<pack>(exec, x, partial);
  } else {
    device_sum_rows<1>(exec, x, partial);
  }
  sum_groups<Out>(exec, partial, accumulate, {out});
}

#define KZERO_INSTANTIATE(T)                                                                  \
  template void sum_groups<T>(const Execution&, Matrix<const float>, Accumulate, Results<T>); \
  template void sum_rows<T>(const Execution&, Matrix<const T>, Accumulate, Vector<T>,         \
                            Matrix<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

#define KZERO_INSTANTIATE(T)                                                              \
  template void sum_rows<T>(const Execution&, Matrix<const T>, Accumulate, Vector<float>, \
                            Matrix<float>);
KZERO_INSTANTIATE(bf16)
KZERO_INSTANTIATE(fp16)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
