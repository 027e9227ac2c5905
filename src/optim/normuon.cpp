#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/adamw.hpp"
#include "optim/elementwise.hpp"
#include "optim/fixed_sum.hpp"
#include "optim/kinds.hpp"
#include "optim/muon.hpp"
#include "optim/segments.hpp"

namespace kzero::optim {

namespace {

using param::Axis;

constexpr Index outputs_at_once = 256;       // columns whose sums fit in the L1 cache
constexpr Index rows_at_once = 128;          // whose sums these are
constexpr Index elements_at_once = 4096;     // per thread
constexpr double max_output_norm = 1 << 10;  // of X, whose singular values are near 1

/// Consecutive columns of a parameter.
struct Columns {
  Index first = 0, last = 0;
};

/// The columns of matrix `number` of a parameter.
Columns columns_of(const param::ParamSpec& parameter, Index number) {
  const Index columns = parameter.matrix_columns();
  return {number * columns, (number + 1) * columns};
}

/// Calls f(at, row, column, count) for adjacent elements [at, at + count) of the part, of one row
/// and from `column` on. These are elements [begin, end) of the part that are in `columns`.
template <class T, class F>
void for_each_run(const ParameterPart<T>& part, Index begin, Index end, const Columns& columns,
                  const F& f) {
  const Index first = part.in_param;
  for_each_segment(*part.spec, first + begin, first + end, [&](const Segment& s) {
    const Index from = std::max(columns.first, s.column);
    const Index to = std::min(columns.last, s.column + s.count);
    if (from < to) f(s.local - first + (from - s.column), s.row, from, to - from);
  });
}

using Cores = Kokkos::DefaultHostExecutionSpace;

auto on_cores(Index count) {
  return Kokkos::RangePolicy<Cores, Kokkos::IndexType<Index>>(Cores(), 0, count);
}

/// A sum of squares of an output's elements.
struct OutputSquares {
  std::int64_t high = 0, low = 0;

  void add(const FixedSums::Words& square) {
    high += square.high;
    low += square.low;
  }

  void add_to(std::uint64_t* sum) const {
    Kokkos::atomic_add(sum, static_cast<std::uint64_t>(high));
    Kokkos::atomic_add(sum + 1, static_cast<std::uint64_t>(low));
  }
};

/// Adds the squares of the part's elements to the sums of rows. Sums are integers, so the order of
/// threads has no effect.
template <class T>
void add_squares_of_rows(const ParameterPart<T>& part) {
  const Columns all = columns_of(*part.spec, 0);
  const FixedSums fixed(max_output_norm);
  Kokkos::parallel_for("kzero::optim::add_squares_of_rows",
                       on_cores(ceil_div(part.count, elements_at_once)), [=](Index number) {
                         const Index begin = number * elements_at_once;
                         const Index end = std::min(part.count, begin + elements_at_once);
                         for_each_run(
                             part, begin, end, all, [&](Index at, Index row, Index, Index count) {
                               OutputSquares sum;
                               for (Index i = 0; i < count; ++i)
                                 sum.add(fixed.words_of(static_cast<float>(part.gradient[at + i])));
                               sum.add_to(part.adds + FixedSums::words * row);
                             });
                       });
  Cores().fence("kzero::optim::add_squares_of_rows");
}

/// Does the same for columns.
template <class T>
void add_squares_of_columns(const ParameterPart<T>& part) {
  const param::ParamSpec& spec = *part.spec;
  const Index width = param::columns_of(spec.shape), across = ceil_div(width, outputs_at_once);
  const FixedSums fixed(max_output_norm);
  const Index tile = rows_at_once * std::max<Index>(1, spec.held() / spec.matrix_rows());
  Kokkos::parallel_for("kzero::optim::add_squares_of_columns",
                       on_cores(ceil_div(part.count, tile) * across), [=](Index number) {
                         const Index begin = number / across * tile,
                                     first = number % across * outputs_at_once;
                         const Columns columns{first, std::min(width, first + outputs_at_once)};
                         OutputSquares sums[outputs_at_once];
                         for_each_run(part, begin, std::min(part.count, begin + tile), columns,
                                      [&](Index at, Index, Index column, Index count) {
                                        for (Index i = 0; i < count; ++i)
                                          sums[column - first + i].add(fixed.words_of(
                                              static_cast<float>(part.gradient[at + i])));
                                      });
                         for (Index c = first; c < columns.last; ++c)
                           sums[c - first].add_to(part.adds + FixedSums::words * c);
                       });
  Cores().fence("kzero::optim::add_squares_of_columns");
}

/// The second half of the update of a matrix: w = w kept - rate / (sqrt(v) + eps) X.
struct OutputStep {
  const float* moments = nullptr;  // v of the parameter's outputs
  float rate = 0;
  float eps = 0;
  float kept = 1;
  bool cautious = false;

  float rate_of(Index output) const { return rate / (std::sqrt(moments[output]) + eps); }

  float weight(float w, float x, float own_rate) const {
    return Kokkos::fma(-own_rate, x, w * kernels::kept_of(kept, cautious, x, w));
  }
};

template <class T>
void step_outputs(const ParameterPart<T>& part, const Columns& columns, Axis outputs,
                  const OutputStep& step) {
  float* const master = part.state.master();
  Kokkos::parallel_for(
      "kzero::optim::step_outputs", on_cores(ceil_div(part.count, elements_at_once)),
      [=](Index number) {
        const Index begin = number * elements_at_once;
        const Index end = std::min(part.count, begin + elements_at_once);
        for_each_run(
            part, begin, end, columns, [&](Index at, Index row, Index column, Index count) {
              const float of_row = outputs == Axis::row ? step.rate_of(row) : 0;
              for (Index i = 0; i < count; ++i) {
                const float rate = outputs == Axis::row ? of_row : step.rate_of(column + i);
                float& w = master[at + i];
                w = step.weight(w, static_cast<float>(part.gradient[at + i]), rate);
                part.parameters[at + i] = static_cast<T>(w);
              }
            });
      });
  Cores().fence("kzero::optim::step_outputs");
}

class NorMuon : public ElementwiseOptimizer<NorMuon>, public MuonMatrices {
 public:
  NorMuon(const deck::Optimizer& deck, Axis outputs)
      : ElementwiseOptimizer(deck),
        MuonMatrices(deck),
        outputs_(outputs),
        reduced_{{"output_moments", outputs}} {}

  std::string_view kind() const override { return "normuon"; }
  const param::StateArrays& state() const override { return muon_state(); }
  const MatrixRule* matrix_rule() const override { return this; }
  const param::ReducedArrays& reduced_state() const override { return reduced_; }
  bool runs_on_host_alone() const override { return true; }
  int passes() const override { return 2; }

  Index sum_words(int, const param::ParamSpec& parameter) const override {
    return parameter.is_matrix() ? FixedSums::words * outputs_of(parameter) : 0;
  }

  void update_reduced(const Update&, const param::ParamSpec& parameter, const std::uint64_t* sums,
                      float* reduced) const override {
    if (!parameter.is_matrix()) return;
    const Index count = outputs_of(parameter);
    const double inputs = static_cast<double>(parameter.elements()) / static_cast<double>(count);
    for (Index i = 0; i < count; ++i) {
      const double before = reduced[i], now = squares(sums, i) / inputs;
      reduced[i] = static_cast<float>(before + (1 - deck_.beta2) * (now - before));
    }
  }

  /// The gradient of a matrix has already been replaced by X.
  template <class Where, class T>
  void update_share(const Where& where, const Update& update, const Share<T>& share) const {
    if constexpr (std::is_same_v<Where, tensor::Execution>) where.fence("kzero::optim::normuon");
    kernels::UpdateBatch<T, kernels::AdamWStep, Where> others(where);
    for_each_part(update, share, [&](const Update& own, const ParameterPart<T>& part) {
      if (part.spec->is_matrix()) {
        update_matrices(own, part);
      } else if (own.pass == 1) {
        others.add({adamw_step(deck_, own, part.weight_decay),
                    arrays_of<kernels::AdamWStep::arrays>(part), part.count});
      }
    });
    others.run();
  }

 private:
  Index outputs_of(const param::ParamSpec& parameter) const {
    return outputs_ == Axis::row ? param::rows_of(parameter.shape)
                                 : param::columns_of(parameter.shape);
  }

  static double squares(const std::uint64_t* sums, Index output) {
    return FixedSums(max_output_norm).value(sums + FixedSums::words * output);
  }

  template <class T>
  void update_matrices(const Update& update, const ParameterPart<T>& part) const {
    if (update.pass == 0) {
      if (part.adds == nullptr) return;
      if (outputs_ == Axis::row) {
        add_squares_of_rows(part);
      } else {
        add_squares_of_columns(part);
      }
      return;
    }
    for (Index m = 0; m < part.spec->matrices; ++m) {
      const OutputStep step{.moments = part.reduced,
                            .rate = rate_of(update, part, m),
                            .eps = static_cast<float>(deck_.eps),
                            .kept = kept_after_decay(update, part.weight_decay),
                            .cautious = deck_.cautious_decay};
      step_outputs(part, columns_of(*part.spec, m), outputs_, step);
    }
  }

  /// Returns the rate that gives the elements of matrix m's update AdamW's root mean square. The
  /// norm of O follows from the sums.
  template <class T>
  float rate_of(const Update& update, const ParameterPart<T>& part, Index m) const {
    const param::ParamSpec& p = *part.spec;
    const Columns outputs = outputs_ == Axis::row ? Columns{0, p.matrix_rows()} : columns_of(p, m);
    double norm = 0;
    for (Index i = outputs.first; i < outputs.last; ++i) {
      const double root = std::sqrt(static_cast<double>(part.reduced[i])) + deck_.eps;
      norm += squares(part.sums, i) / (root * root);
    }
    const auto elements = static_cast<double>(p.matrix_rows() * p.matrix_columns());
    return static_cast<float>(norm > 0 ? update.lr * rms_of_adamw * std::sqrt(elements / norm) : 0);
  }

  Axis outputs_;
  param::ReducedArrays reduced_;
};

}  // namespace

std::unique_ptr<const Optimizer> make_normuon(const deck::Optimizer& deck, param::Axis outputs) {
  return std::make_unique<NorMuon>(deck, outputs);
}

}  // namespace kzero::optim
