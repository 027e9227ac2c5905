#include "kernels/embedding.hpp"

namespace kzero::kernels {

template <class T>
void embedding_forward(const Execution& exec, Vector<const Token> tokens, Matrix<const T> wte,
                       Matrix<const T> wpe, const StreamRows& rows, const Documents& documents,
                       Matrix<T> x) {
  const Index width = x.extent(1);
  const RowPositions position_of(documents, rows);
  Kokkos::parallel_for(
      "kzero::kernels::embedding_forward",
      Policy(exec, static_cast<int>(x.extent(0)), Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        const T* token = &wte(tokens(i), 0);
        const T* position = &wpe(position_of(i), 0);
        T* out = &x(i, 0);
        for_each(team, width, [=](Index j) {
          out[j] = static_cast<T>(static_cast<float>(token[j]) + static_cast<float>(position[j]));
        });
      });
}

template <class T>
void embedding_lookup(const Execution& exec, Vector<const Token> tokens, Matrix<const T> wte,
                      Index first_token, Matrix<T> x) {
  const Index width = x.extent(1), held = wte.extent(0);
  Kokkos::parallel_for(
      "kzero::kernels::embedding_lookup", Policy(exec, static_cast<int>(x.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank(), token = tokens(i) - first_token;
        T* out = &x(i, 0);
        if (token >= 0 && token < held) {
          const T* row = &wte(token, 0);
          for_each(team, width, [=](Index j) { out[j] = row[j]; });
        } else {
          for_each(team, width, [=](Index j) { out[j] = static_cast<T>(0.0F); });
        }
      });
}

namespace {

template <class T, class F>
void add_rows_of(const Execution& exec, const char* label, Matrix<const T> wpe, Matrix<T> x,
                 const F& position_of) {
  const Index width = x.extent(1);
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(x.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        const T* position = &wpe(position_of(i), 0);
        T* out = &x(i, 0);
        for_each(team, width, [=](Index j) {
          out[j] = static_cast<T>(static_cast<float>(out[j]) + static_cast<float>(position[j]));
        });
      });
}

}  // namespace

template <class T>
void add_positions(const Execution& exec, Matrix<const T> wpe, const StreamRows& rows,
                   const Documents& documents, Matrix<T> x) {
  add_rows_of<T>(exec, "kzero::kernels::add_positions", wpe, x, RowPositions(documents, rows));
}

template <class T>
void add_positions_at(const Execution& exec, Matrix<const T> wpe, Vector<const Index> positions,
                      Matrix<T> x) {
  add_rows_of<T>(
      exec, "kzero::kernels::add_positions_at", wpe, x,
      KOKKOS_LAMBDA(Index i) { return positions(i); });
}

namespace {

template <class T>
void sum_positions(const Execution& exec, Matrix<const T> dx, const StreamRows& of,
                   Accumulate accumulate, Matrix<T> dwpe) {
  const Index rows = dx.extent(0), width = dx.extent(1), sequence = of.sequence;
  const Index offset = of.first % sequence;
  const bool keep = accumulate == Accumulate::yes;
  Kokkos::parallel_for(
      "kzero::kernels::position_embedding_backward",
      Policy(exec, static_cast<int>(sequence), Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const Index t = team.league_rank();
        const Index first = t >= offset ? t - offset : t - offset + sequence;
        T* out = &dwpe(t, 0);
        for_each(team, width, [=](Index j) {
          float total = keep ? static_cast<float>(out[j]) : 0.0F;
          for (Index i = first; i < rows; i += sequence) total += static_cast<float>(dx(i, j));
          out[j] = static_cast<T>(total);
        });
      });
}

// The columns that one visit of all documents sums. A device's thread has one.
constexpr int columns_at_once = tensor::on_host ? 64 : 1;

/// Walks from document to document, and adds row t of each that has it among the rows.
template <class T>
void sum_positions_of_documents(const Execution& exec, Matrix<const T> dx, const StreamRows& of,
                                const Documents& documents, Accumulate accumulate, Matrix<T> dwpe) {
  const Index width = dx.extent(1), blocks = ceil_div(width, columns_at_once);
  const Index first_row = of.first, last = first_row + static_cast<Index>(dx.extent(0));
  const Index sequence = of.sequence;
  const bool keep = accumulate == Accumulate::yes;
  const std::int32_t* begin = documents.begin.data();
  const std::int32_t* end = documents.end.data();
  Kokkos::parallel_for(
      "kzero::kernels::position_embedding_backward_of_documents",
      Policy(exec, static_cast<int>(sequence), Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const Index t = team.league_rank();
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, blocks), [=](Index block) {
          const Index first = block * columns_at_once;
          const Index count = tensor::on_host ? Kokkos::min(Index{columns_at_once}, width - first)
                                              : Index{columns_at_once};
          T* out = &dwpe(t, first);
          float totals[columns_at_once];
          for (Index j = 0; j < count; ++j) totals[j] = keep ? static_cast<float>(out[j]) : 0.0F;
          for (Index row = first_row, next = row; row < last; row = next) {
            const Index before = row / sequence * sequence;
            next = before + end[row];
            const Index wanted = before + begin[row] + t;  // row t of the document
            if (wanted < row || wanted >= Kokkos::min(next, last)) continue;
            const T* of_row = &dx(wanted - first_row, first);
            for (Index j = 0; j < count; ++j) totals[j] += static_cast<float>(of_row[j]);
          }
          for (Index j = 0; j < count; ++j) out[j] = static_cast<T>(totals[j]);
        });
      });
}

template <class T>
void host_sum_tokens(const Execution& exec, const TokenGroups& groups, Matrix<const T> dx,
                     Index first_token, Matrix<T> dwte) {
  const Index width = dx.extent(1), held = dwte.extent(0);
  const TokenGroups g = groups;
  Kokkos::parallel_for(
      "kzero::kernels::token_embedding_backward",
      Policy(exec, static_cast<int>(g.distinct), Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const Index u = team.league_rank(), token = g.token(u) - first_token;
        if (token < 0 || token >= held) return;
        const Index first = g.begin(u), last = g.begin(u + 1);
        T* out = &dwte(token, 0);
        for_each(team, width, [=](Index j) {
          float total = 0;
          for (Index k = first; k < last; ++k) total += static_cast<float>(dx(g.order(k), j));
          out[j] = static_cast<T>(static_cast<float>(out[j]) + total);
        });
      });
}

// On devices a warp sums one run of a token's rows, and the runs are then added in order: a text
// has some tokens thousands of times. Each lane has a pack of columns.
constexpr int token_runs = 8, run_lanes = 32;

template <int pack, class T>
void device_sum_tokens(const Execution& exec, const TokenGroups& groups, Matrix<const T> dx,
                       Index first_token, Matrix<T> dwte) {
  constexpr Index columns = run_lanes * pack;
  using Sums = Kokkos::View<float[token_runs][columns], Execution::scratch_memory_space,
                            Kokkos::MemoryUnmanaged>;
  const Index width = dx.extent(1), held = dwte.extent(0), blocks = ceil_div(width, columns);
  const TokenGroups g = groups;
  Policy policy(exec, static_cast<int>(g.distinct * blocks), team_size(token_runs),
                vector_length(run_lanes));
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(Sums::shmem_size())));
  Kokkos::parallel_for(
      "kzero::kernels::token_embedding_backward", policy, KOKKOS_LAMBDA(const Team& team) {
        const Sums sums(team.team_scratch(0));
        const Index u = team.league_rank() / blocks, token = g.token(u) - first_token;
        if (token < 0 || token >= held) return;
        const Index begin = team.league_rank() % blocks * Index{columns};
        const Index packs = Kokkos::min(Index{columns}, width - begin) / pack;
        const Index first = g.begin(u), last = g.begin(u + 1);
        const Index run = ceil_div(last - first, Index{token_runs});
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, int{token_runs}), [&](int r) {
          const Index from = Kokkos::min(first + r * run, last);
          const Index to = Kokkos::min(from + run, last);
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, packs), [&](Index number) {
            const Index column = begin + number * pack;
            const auto row = [=](Index k) { return Pack<T, pack>::at(&dx(g.order(k), column)); };
            const auto total = sum_of_packs<4, pack>(from, to, row);
            for (int e = 0; e < pack; ++e) sums(r, number * pack + e) = total.values[e];
          });
        });
        team.team_barrier();
        T* out = &dwte(token, begin);
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, packs * pack), [&](Index j) {
          float total = 0;
          for (int r = 0; r < token_runs; ++r) total += sums(r, j);
          out[j] = static_cast<T>(static_cast<float>(out[j]) + total);
        });
      });
}

template <class T>
void sum_tokens(const Execution& exec, const TokenGroups& groups, Matrix<const T> dx,
                Index first_token, Matrix<T> dwte) {
  constexpr int pack = 16 / sizeof(T);
  if constexpr (tensor::on_host) {
    host_sum_tokens(exec, groups, dx, first_token, dwte);
  } else if (dx.extent(1) % pack == 0 && begin_packs(dx.data())) {
    device_sum_tokens<pack>(exec, groups, dx, first_token, dwte);
  } else {
    device_sum_tokens<1>(exec, groups, dx, first_token, dwte);
  }
}

}  // namespace

template <class T>
void embedding_backward(const Execution& exec, const TokenGroups& groups, Matrix<const T> dx,
                        const StreamRows& rows, const Documents& documents, Index first_token,
                        Matrix<T> dwte, Accumulate accumulate, Matrix<T> dwpe) {
  sum_tokens<T>(exec, groups, dx, first_token, dwte);
  if (dwpe.size() == 0) return;
  if (documents.empty()) {
    sum_positions<T>(exec, dx, rows, accumulate, dwpe);
  } else {
    sum_positions_of_documents<T>(exec, dx, rows, documents, accumulate, dwpe);
  }
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void embedding_forward<T>(const Execution&, Vector<const Token>, Matrix<const T>,       \
                                     Matrix<const T>, const StreamRows&, const Documents&,         \
                                     Matrix<T>);                                                   \
  template void embedding_lookup<T>(const Execution&, Vector<const Token>, Matrix<const T>, Index, \
                                    Matrix<T>);                                                    \
  template void add_positions<T>(const Execution&, Matrix<const T>, const StreamRows&,             \
                                 const Documents&, Matrix<T>);                                     \
  template void add_positions_at<T>(const Execution&, Matrix<const T>, Vector<const Index>,        \
                                    Matrix<T>);                                                    \
  template void embedding_backward<T>(const Execution&, const TokenGroups&, Matrix<const T>,       \
                                      const StreamRows&, const Documents&, Index, Matrix<T>,       \
                                      Accumulate, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
