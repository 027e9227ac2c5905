#include "kernels/host/expert_products.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/host/product.hpp"
#include "kernels/host/transpose.hpp"

namespace kzero::kernels::host {

namespace {

using tensor::Accumulate;
using tensor::Transpose;

// A task computes a block of one expert's results. It packs a panel of the second operand, which
// fits the second-level cache of a core together with the block's sums. The sums run over blocks
// of terms in order. Packing takes a twentieth of the time, and less for more rows.
constexpr Index task_rows = 384, panel_columns = 64, task_terms = 256;
/// Rows of the first operand that are packed at once where it cannot be read in place.
constexpr Index packed_rows = 48;

template <class T>
using Element = HostElement<T>;

/// A matrix in memory, and how its elements are numbered: (i, k) is at data[i * row + k * column].
template <class T>
struct Source {
  const T* data;
  Index row, column;

  T at(Index i, Index k) const { return data[i * row + k * column]; }
};

/// Element `k` of a packed operand: one term, or two, of which those from `terms` on are 0.
template <class T>
Element<T> packed_element(const Source<T>& from, Index i, Index k, Index terms) {
  if constexpr (depth<Element<T>> == 1) {
    return static_cast<float>(from.at(i, k));
  } else {
    return {from.at(i, 2 * k), 2 * k + 1 < terms ? from.at(i, 2 * k + 1) : T(0.0F)};
  }
}

/// The packed elements of so many terms.
template <class T>
constexpr Index packed_terms(Index terms) {
  return ceil_div(terms, depth<Element<T>>);
}

bool starts_pairs(const void* data, Index stride) {
  return std::bit_cast<std::uintptr_t>(data) % sizeof(Bf16Pair) == 0 && stride % 2 == 0;
}

/// Packs the first `columns` columns of a row, or of two, to `to`, as far as vectors reach. Returns
/// how many.
template <class T>
Index pack_vectors(const Source<T>& from, Index k, Index terms, Index columns, Element<T>* to) {
  const T* row = from.data + k * depth<Element<T>> * from.column;
  Index done = 0;
  if constexpr (depth<Element<T>> == 1) {
    done = columns / host_lanes * host_lanes;
    for (Index j = 0; j < done; j += host_lanes) store_vector(to + j, load_widened(row + j));
  } else if (2 * k + 1 < terms && starts_pairs(row, from.column)) {
    done = columns / (2 * host_lanes) * (2 * host_lanes);
    interleave(reinterpret_cast<const Bf16Pair*>(row),
               reinterpret_cast<const Bf16Pair*>(row + from.column), done, to);
  }
  return done;
}

/// Packs `terms` terms of `columns` columns, of which column j is row j of the source: to[k][j],
/// with `width` elements from k to k. Columns up to the next full vector become 0.
template <class T>
void pack_rows_of_terms(const Source<T>& from, Index terms, Index columns, Index width,
                        Element<T>* to) {
  const Index full = round_up(columns, host_lanes);
  for (Index k = 0; k < packed_terms<T>(terms); ++k, to += width) {
    Index j = pack_vectors(from, k, terms, columns, to);
    for (; j < columns; ++j) to[j] = packed_element(from, j, k, terms);
    std::fill(to + j, to + full, Element<T>{});
  }
}

/// The same for a source whose terms are neighbours.
template <class T>
void pack_columns_of_terms(const Source<T>& from, Index terms, Index columns, Index width,
                           Element<T>* to) {
  Index whole_columns = 0, whole_terms = 0;
  if constexpr (!std::is_same_v<T, fp16>) {
    if (depth<Element<T>> == 1 || starts_pairs(from.data, from.row)) {
      whole_columns = columns / host_lanes * host_lanes;
      whole_terms = terms / depth<Element<T>> / host_lanes * host_lanes;
    }
    transpose(whole_columns, whole_terms, reinterpret_cast<const Element<T>*>(from.data),
              from.row / depth<Element<T>>, to, width);
  }
  const Index full = round_up(columns, host_lanes);
  for (Index k = 0; k < packed_terms<T>(terms); ++k, to += width) {
    Index j = k < whole_terms ? whole_columns : 0;
    for (; j < columns; ++j) to[j] = packed_element(from, j, k, terms);
    std::fill(to + j, to + full, Element<T>{});
  }
}

template <class T>
void pack_panel(const Source<T>& from, Index terms, Index columns, Index width, Element<T>* to) {
  if (from.column == 1) {
    pack_columns_of_terms(from, terms, columns, width, to);
  } else {
    pack_rows_of_terms(from, terms, columns, width, to);
  }
}

/// Scratch of a task, without the initial values that elements would have.
template <class E, Index count>
struct Scratch {
  alignas(64) std::byte memory[count * sizeof(E)];

  E* data() { return reinterpret_cast<E*>(memory); }
};

/// The block of results that a task computes, [rows, columns] from (row, column) on.
struct Block {
  Index row, rows, column, columns;
};

/// The tasks of all experts: blocks of `all_rows(expert)` rows and `columns` columns. Calls
/// f(expert, block) for each.
template <class Experts, class RowsOf, class F>
void for_each_block(const Execution& exec, const char* label, const Experts& experts, Index columns,
                    const RowsOf& all_rows, const F& f) {
  using Dynamic =
      Kokkos::RangePolicy<Execution, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<Index>>;
  const Index panels = ceil_div(columns, panel_columns);
  Index tasks = 0;
  for (const auto& expert : experts) tasks += panels * ceil_div(all_rows(expert), task_rows);
  Kokkos::parallel_for(label, Dynamic(exec, 0, tasks), [=](Index task) {
    auto expert = experts.begin();
    const auto tasks_of = [&] { return panels * ceil_div(all_rows(*expert), task_rows); };
    for (; task >= tasks_of(); ++expert) task -= tasks_of();
    const Index row = task / panels * task_rows, column = task % panels * panel_columns;
    f(*expert, Block{row, std::min(task_rows, all_rows(*expert) - row), column,
                     std::min(panel_columns, columns - column)});
  });
}

template <class Out>
void store_block(const float* sums, const Block& block, Out* to, Index stride,
                 Accumulate accumulate) {
  for (Index i = 0; i < block.rows; ++i, sums += panel_columns, to += stride) {
    if (accumulate == Accumulate::yes) {
      detail::map_vectors(
          block.columns, to, [](auto sum, auto old) { return old + sum; }, sums,
          static_cast<const Out*>(to));
    } else {
      detail::map_vectors(
          block.columns, to, [](auto sum) { return sum; }, sums);
    }
  }
}

/// Whether products can read rows of x in place.
template <class T>
bool reads_in_place(Matrix<const T> x, Index terms) {
  if constexpr (depth<Element<T>> == 1) return std::is_same_v<T, float>;
  return starts_pairs(x.data(), static_cast<Index>(x.extent(1))) && terms % 2 == 0;
}

/// Adds the products of `terms` terms of rows of x, from the given element on, to a block's sums.
template <class T>
void multiply_rows_of_x(const ProductBackend<Element<T>>& backend, const T* x, Index stride,
                        bool in_place, Index terms, HostProduct<Element<T>> p) {
  if (in_place) {
    p.a = {reinterpret_cast<const Element<T>*>(x), stride / depth<Element<T>>};
    return backend.multiply(p);
  }
  Scratch<Element<T>, packed_rows * task_terms> packed;
  const Index rows = p.m;
  p.a = {packed.data(), task_terms};
  for (Index i = 0; i < rows; i += packed_rows, p.c += packed_rows * panel_columns) {
    p.m = std::min(packed_rows, rows - i);
    for (Index r = 0; r < p.m; ++r) {
      const Source<T> row{x + (i + r) * stride, 0, 1};
      for (Index k = 0; k < p.k; ++k)
        packed.data()[r * task_terms + k] = packed_element(row, 0, k, terms);
    }
    backend.multiply(p);
  }
}

}  // namespace

template <class T>
void expert_products(const Execution& exec, std::span<const ExpertRows<const T>> experts,
                     const WeightShape& shape, Transpose transpose, Matrix<const T> x,
                     Matrix<T> y) {
  using E = Element<T>;
  const bool is_transposed = transpose == Transpose::yes;
  const Index terms = is_transposed ? shape.columns : shape.rows;
  const Index columns = is_transposed ? shape.rows : shape.columns;
  const Index x_stride = x.extent(1), y_stride = y.extent(1), weight_stride = shape.columns;
  const bool in_place = reads_in_place(x, terms);
  const auto backend = product_backend<E>();
  const auto rows_of = [](const ExpertRows<const T>& expert) { return expert.rows; };
  const auto compute = [=](const ExpertRows<const T>& expert, const Block& block) {
    Scratch<float, task_rows * panel_columns> sums;
    Scratch<E, task_terms * panel_columns / depth<E>> panel;
    const T* rows = x.data() + (expert.first + block.row) * x_stride;
    backend.begin();
    for (Index k = 0; k == 0 || k < terms; k += task_terms) {
      const Index count = std::min(task_terms, terms - k);
      const T* weight = is_transposed ? expert.weight + block.column * weight_stride + k
                                      : expert.weight + k * weight_stride + block.column;
      const Source<T> source =
          is_transposed ? Source<T>{weight, weight_stride, 1} : Source<T>{weight, 1, weight_stride};
      pack_panel(source, count, block.columns, panel_columns, panel.data());
      HostProduct<E> p{.m = block.rows,
                       .n = round_up(block.columns, host_lanes),
                       .k = packed_terms<T>(count),
                       .a = {},
                       .b = panel.data(),
                       .b_stride = panel_columns,
                       .c = sums.data(),
                       .c_stride = panel_columns,
                       .adds = k > 0};
      multiply_rows_of_x<T>(backend, rows + k, x_stride, in_place, count, p);
    }
    backend.end();
    store_block(sums.data(), block, y.data() + (expert.first + block.row) * y_stride + block.column,
                y_stride, Accumulate::no);
  };
  for_each_block(exec, "kzero::kernels::expert_products", experts, columns, rows_of, compute);
}

template <class T, class Out>
void expert_gradients(const Execution& exec, std::span<const ExpertRows<Out>> experts,
                      const WeightShape& shape, Matrix<const T> a, Matrix<const T> b,
                      Accumulate accumulate) {
  using E = Element<T>;
  const Index a_stride = a.extent(1), b_stride = b.extent(1), stride = shape.columns;
  const Index all_rows = shape.rows;
  const auto backend = product_backend<E>();
  const auto rows_of = [=](const ExpertRows<Out>&) { return all_rows; };
  const auto compute = [=](const ExpertRows<Out>& expert, const Block& block) {
    Scratch<float, task_rows * panel_columns> sums;
    Scratch<E, task_terms * panel_columns / depth<E>> panel;
    Scratch<E, task_terms * task_rows / depth<E>> first;
    backend.begin();
    for (Index r = 0; r == 0 || r < expert.rows; r += task_terms) {
      const Index count = std::min(task_terms, expert.rows - r), row = expert.first + r;
      pack_rows_of_terms(Source<T>{b.data() + row * b_stride + block.column, 1, b_stride}, count,
                         block.columns, panel_columns, panel.data());
      pack_rows_of_terms(Source<T>{a.data() + row * a_stride + block.row, 1, a_stride}, count,
                         block.rows, task_rows, first.data());
      backend.multiply({.m = block.rows,
                        .n = round_up(block.columns, host_lanes),
                        .k = packed_terms<T>(count),
                        .a = {first.data(), 1, task_rows},
                        .b = panel.data(),
                        .b_stride = panel_columns,
                        .c = sums.data(),
                        .c_stride = panel_columns,
                        .adds = r > 0});
    }
    backend.end();
    store_block(sums.data(), block, expert.weight + block.row * stride + block.column, stride,
                accumulate);
  };
  for_each_block(exec, "kzero::kernels::expert_gradients", experts, shape.columns, rows_of,
                 compute);
}

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define KZERO_INSTANTIATE_GRADIENTS(T, Out)                                                    \
  template void expert_gradients<T, Out>(const Execution&, std::span<const ExpertRows<Out>>,   \
                                         const WeightShape&, Matrix<const T>, Matrix<const T>, \
                                         Accumulate);
// NOLINTEND(bugprone-macro-parentheses)
#define KZERO_INSTANTIATE(T)                                                                   \
  template void expert_products<T>(const Execution&, std::span<const ExpertRows<const T>>,     \
                                   const WeightShape&, Transpose, Matrix<const T>, Matrix<T>); \
  KZERO_INSTANTIATE_GRADIENTS(T, T)
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
KZERO_INSTANTIATE_GRADIENTS(bf16, float)
KZERO_INSTANTIATE_GRADIENTS(fp16, float)
#undef KZERO_INSTANTIATE
#undef KZERO_INSTANTIATE_GRADIENTS

}  // namespace kzero::kernels::host
