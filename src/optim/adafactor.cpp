#include "optim/kinds.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "kernels/update_sums.hpp"
#include "optim/elementwise.hpp"
#include "optim/fixed_sum.hpp"
#include "optim/segments.hpp"

namespace kzero::optim {

namespace {

// Constants of the paper (sections 6, 7.2 and 8), which are also torch.optim.Adafactor's defaults.
constexpr double decay_exponent = -0.8;   // of the number of updates, gives 1 - beta2
constexpr double min_scale = 1e-3;        // of a parameter's root mean square: epsilon 2
constexpr double clipping_threshold = 1;  // of an update's root mean square

using Host = Kokkos::DefaultHostExecutionSpace;
using HostRange = Kokkos::RangePolicy<Host, Kokkos::IndexType<Index>>;
using kernels::detail::host_for;

/// The mean squares of a parameter's rows and columns. A vector has only columns.
template <class Float>
struct MeansOf {
  std::span<Float> rows, columns;
};
using Means = MeansOf<const float>;

template <class Float>
MeansOf<Float> means_of(const param::ParamSpec& parameter, Float* reduced) {
  const Index rows = param::rows_of(parameter.shape), columns = param::columns_of(parameter.shape);
  return {{reduced, static_cast<std::size_t>(rows)},
          {reduced + rows, static_cast<std::size_t>(columns)}};
}

/// The factors of an element's update that do not depend on its row or column.
struct Factors {
  float gradient_scale = 1;
  float min_root = 0;  // of the second moment
  float of_rows = 0;   // 1 / mean of the row means; second moment = row * of_rows * column

  Factors(const Update& update, double eps, const Means& means)
      : gradient_scale(static_cast<float>(update.gradient_scale)),
        min_root(static_cast<float>(eps)) {
    double sum = 0;
    for (const float row : means.rows) sum += static_cast<double>(row);
    const double mean = means.rows.empty() ? 1 : sum / static_cast<double>(means.rows.size());
    of_rows = static_cast<float>(1 / std::max(mean, eps));
  }

  float row(const Means& means, Index number) const {
    return means.rows.empty() ? 1.0F : means.rows[number] * of_rows;
  }

  /// Returns g / sqrt(second moment), or 0 if the second moment is 0. All gradients were then 0 or
  /// counted as 0.
  float direction(float gradient, float row, float column) const {
    const float root = std::sqrt(row * column);
    const float u = gradient * gradient_scale / (root > min_root ? root : min_root);
    return root > 0 ? u : 0.0F;
  }
};

/// One parameter's elements of a share, with the means that the passes use.
template <class T>
struct Elements {
  const param::ParamSpec& parameter;
  Index begin, end;   // of the rank's part of the parameter
  const T* gradient;  // at begin
  float* master;
  T* parameters;
  Means means;
};

template <class T>
Elements<T> elements_of(const ParameterPart<T>& part) {
  return {*part.spec,    part.in_param,   part.in_param + part.count,        part.gradient,
          part.state[0], part.parameters, means_of(*part.spec, part.reduced)};
}

constexpr Index column_block = 256;  // columns whose sums fit in the L1 cache
constexpr Index tile_rows = 128;
constexpr Index update_block = 4096;  // elements per thread at a time
constexpr Index blocks_at_once = 64;  // of kernels::squares_block elements

void add_atomically(std::uint64_t* sum, std::int64_t high, std::int64_t low) {
  Kokkos::atomic_add(sum, static_cast<std::uint64_t>(high));
  Kokkos::atomic_add(sum + 1, static_cast<std::uint64_t>(low));
}

/// The sums of some columns.
struct ColumnSums {
  std::int64_t high[column_block] = {}, low[column_block] = {};

  /// Adds the squares of a segment of a row. Returns the segment's sum.
  template <class T>
  FixedSums::Words add(const FixedSums& sums, const T* gradient, Index column, Index count) {
    std::int64_t row_high = 0, row_low = 0;
#pragma omp simd reduction(+ : row_high, row_low)
    for (Index i = 0; i < count; ++i) {
      const FixedSums::Words square = sums.words_of(static_cast<float>(gradient[i]));
      high[column + i] += square.high;
      low[column + i] += square.low;
      row_high += square.high;
      row_low += square.low;
    }
    return {row_high, row_low};
  }
};

/// Adds the squares of elements [begin, end) in columns [first, last) to the row and column sums.
/// Sums are integers, so the order of threads has no effect.
template <class T>
void add_tile(const Elements<T>& all, const FixedSums& sums, Index begin, Index end, Index first,
              Index last, std::uint64_t* words) {
  const Index rows = std::ssize(all.means.rows);
  ColumnSums columns;
  for_each_segment(all.parameter, begin, end, [&](const Segment& s) {
    const Index from = std::max(first, s.column), to = std::min(last, s.column + s.count);
    if (from >= to) return;
    const T* gradient = all.gradient + (s.local - all.begin) + (from - s.column);
    const auto row = columns.add(sums, gradient, from - first, to - from);
    if (rows > 0) add_atomically(words + FixedSums::words * s.row, row.high, row.low);
  });
  for (Index c = first; c < last; ++c)
    add_atomically(words + FixedSums::words * (rows + c), columns.high[c - first],
                   columns.low[c - first]);
}

template <class T>
void add_squares(const Elements<T>& all, const FixedSums& sums, std::uint64_t* words) {
  const Index width = std::ssize(all.means.columns);
  const Index rows = std::max<Index>(1, std::ssize(all.means.rows));
  const Index tile = tile_rows * std::max<Index>(1, all.parameter.held() / rows);
  const Index tiles = ceil_div(all.end - all.begin, tile), across = ceil_div(width, column_block);
  Kokkos::parallel_for("kzero::optim::add_squares", HostRange(Host(), 0, tiles * across),
                       [=](Index number) {
                         const Index begin = all.begin + number / across * tile;
                         const Index first = number % across * column_block;
                         add_tile(all, sums, begin, std::min(all.end, begin + tile), first,
                                  std::min(width, first + column_block), words);
                       });
  Host().fence("kzero::optim::add_squares");
}

/// Returns the sums of squares of the weights and of the update's direction.
template <class T>
kernels::ExactSums<2> squares_of_update(const Elements<T>& all, const Factors& factors,
                                        Index first) {
  const kernels::SquaresBlocks blocks{first, first + all.end - all.begin};
  kernels::ExactSums<2> result;
  Kokkos::parallel_reduce(
      "kzero::optim::add_update_squares",
      HostRange(Host(), 0, ceil_div(blocks.count(), blocks_at_once)),
      [=](Index part, kernels::ExactSums<2>& total) {
        const Index to = std::min(blocks.count(), (part + 1) * blocks_at_once);
        for (Index number = part * blocks_at_once; number < to; ++number) {
          const Index begin = blocks.begin(number) - first, n = blocks.end(number) - first - begin;
          float direction[kernels::squares_block];
          for_each_segment(
              all.parameter, all.begin + begin, all.begin + begin + n, [&](const Segment& s) {
                const Index at = s.local - all.begin;
                const float row = factors.row(all.means, s.row);
                const float* columns = all.means.columns.data() + s.column;
                const T* gradient = all.gradient + at;
                float* out = direction + (at - begin);
                const Factors f = factors;
                host_for(s.count, [=](Index i) {
                  out[i] = f.direction(static_cast<float>(gradient[i]), row, columns[i]);
                });
              });
          const float* weights = all.master + begin;
          total.sum[0].add(
              kernels::detail::host_sum(n, [=](Index i) { return weights[i] * weights[i]; }));
          const float* directions = direction;
          total.sum[1].add(
              kernels::detail::host_sum(n, [=](Index i) { return directions[i] * directions[i]; }));
        }
      },
      result);
  return result;
}

/// Sets w = w kept - rate * direction.
template <class T>
void step_weights(const Elements<T>& all, const Factors& factors, float kept, float rate) {
  const Index count = all.end - all.begin;
  Kokkos::parallel_for(
      "kzero::optim::step_weights", HostRange(Host(), 0, ceil_div(count, update_block)),
      [=](Index number) {
        const Index begin = all.begin + number * update_block;
        for_each_segment(
            all.parameter, begin, std::min(all.end, begin + update_block), [&](const Segment& s) {
              const Index at = s.local - all.begin;
              const float row = factors.row(all.means, s.row);
              const float* columns = all.means.columns.data() + s.column;
              const T* gradient = all.gradient + at;
              float* master = all.master + at;
              T* parameters = all.parameters + at;
              const Factors f = factors;
              host_for(s.count, [=](Index i) {
                const float u = f.direction(static_cast<float>(gradient[i]), row, columns[i]);
                const float w = Kokkos::fma(-rate, u, master[i] * kept);
                master[i] = w;
                parameters[i] = static_cast<T>(w);
              });
            });
      });
  Host().fence("kzero::optim::step_weights");
}

class Adafactor : public ElementwiseOptimizer<Adafactor> {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;

  std::string_view kind() const override { return "adafactor"; }

  const param::StateArrays& state() const override {
    static const param::StateArrays arrays{{param::master_weights}};
    return arrays;
  }

  const param::ReducedArrays& reduced_state() const override {
    static const param::ReducedArrays arrays{{"row_means", param::Axis::row},
                                             {"column_means", param::Axis::column}};
    return arrays;
  }

  bool runs_on_host_alone() const override { return true; }
  int passes() const override { return 3; }

  Index sum_words(int pass, const param::ParamSpec& parameter) const override {
    return pass == 0 ? FixedSums::words * param::length_of(reduced_state(), parameter.shape)
                     : 2 * kernels::ExactSum::words_of_sum;
  }

  /// Updates the running means of rows and columns with this step's means.
  void update_reduced(const Update& update, const param::ParamSpec& parameter,
                      const std::uint64_t* sums, float* reduced) const override {
    if (update.pass != 1) return;
    const FixedSums fixed(update.gradient_norm);
    const double square = update.gradient_scale * update.gradient_scale;
    const double weight = std::pow(static_cast<double>(update.number), decay_exponent);
    const MeansOf<float> means = means_of(parameter, reduced);
    const auto average = [&](std::span<float> into, double count) {
      for (float& mean : into) {
        const double now = fixed.value(sums) * square / count, before = mean;
        mean = static_cast<float>(before + weight * (now - before));
        sums += FixedSums::words;
      }
    };
    average(means.rows, static_cast<double>(means.columns.size()));
    average(means.columns, static_cast<double>(std::max<std::size_t>(1, means.rows.size())));
  }

  template <class Where, class T>
  void apply(const Where& where, const Update& update, const ParameterPart<T>& part) const {
    if constexpr (std::is_same_v<Where, tensor::Execution>) where.fence("kzero::optim::adafactor");
    const Elements<T> all = elements_of(part);
    if (update.pass == 0) {
      if (part.adds != nullptr) add_squares(all, FixedSums(update.gradient_norm), part.adds);
      return;
    }
    const Factors factors(update, deck_.eps, all.means);
    if (update.pass == 1) {
      if (part.adds != nullptr)
        kernels::add_to_words(squares_of_update(all, factors, part.first), part.adds);
      return;
    }
    step_weights(all, factors, kept_after_decay(update, part.weight_decay), rate_of(update, part));
  }

 private:
  /// Returns the step size: relative to the weights, and reduced for large updates.
  template <class T>
  static float rate_of(const Update& update, const ParameterPart<T>& part) {
    const auto root_mean = [&](int sum) {
      const double squares = kernels::ExactSum::of_words(part.sums, sum).value();
      return std::sqrt(squares / static_cast<double>(part.spec->elements()));
    };
    const double relative = std::min(update.lr, 1 / std::sqrt(static_cast<double>(update.number)));
    const double size = std::max(min_scale, root_mean(0)) * relative;
    return static_cast<float>(size / std::max(1.0, root_mean(1) / clipping_threshold));
  }
};

}  // namespace

std::unique_ptr<const Optimizer> make_adafactor(const deck::Optimizer& deck) {
  return std::make_unique<Adafactor>(deck);
}

}  // namespace kzero::optim
