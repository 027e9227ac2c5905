#include "kernels/norm.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/device/row_tile.hpp"
#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

constexpr float eps = 1e-5F;

/// RMSNorm equals LayerNorm with a mean of 0 and without a bias.
enum class Norm { layer, rms };

/// The statistics of one row, and the error of fp32 sums over it.
struct Statistics {
  Bounded mean, rstd;
};

template <class T>
Bounded mean_of(const T* row, Index width) {
  const auto count = static_cast<double>(width);
  double total = 0, magnitude = 0;
  for (Index j = 0; j < width; ++j) {
    total += as_double(row[j]);
    magnitude += std::abs(as_double(row[j]));
  }
  return {total / count, gamma(width + 1) * magnitude / count};
}

template <class T>
Statistics statistics(Norm norm, const T* row, Index width) {
  const auto count = static_cast<double>(width);
  const Bounded mean = norm == Norm::layer ? mean_of(row, width) : Bounded{};
  double variance = 0, error = 0;
  for (Index j = 0; j < width; ++j) {
    const double d = std::abs(as_double(row[j]) - mean.value);
    const double off = mean.error + u * (d + mean.error);
    variance += d * d / count;
    error += (2 * d * off + off * off) / count;  // the square's error from that of the difference
  }
  error += gamma(width + 2) * (variance + error);
  // d(v^-1/2) = -v^-3/2 / 2 dv, and three roundings.
  const double rstd = 1 / std::sqrt(variance + static_cast<double>(eps));
  const double relative = 0.5 * error / (variance - error + static_cast<double>(eps)) + gamma(4);
  return {mean, {rstd, rstd * relative}};
}

/// A scale in double, and the roundings of its computation.
struct ExactScale {
  NormScale scale;

  double factor() const { return static_cast<double>(scale.factor); }
  double of(double w) const { return (w + static_cast<double>(scale.offset)) * factor(); }
  Index roundings() const { return (scale.offset != 0 ? 1 : 0) + (scale.factor != 1 ? 1 : 0); }
};

/// Computes (x - mean) * rstd * the scale of w + b.
template <class T>
Bounded normalised(const Statistics& s, T x, T w, double b, const ExactScale& scale = {}) {
  const double d = as_double(x) - s.mean.value, wj = scale.of(as_double(w));
  const double scaled = d * s.rstd.value * wj, value = scaled + b;
  const double error =
      std::abs(wj) * ((s.rstd.value + s.rstd.error) * s.mean.error + std::abs(d) * s.rstd.error) +
      gamma(4 + scale.roundings()) * (std::abs(scaled) + std::abs(b));
  return stored<T>(value, error);
}

/// Calls f like for_each_shape, also for widths about the most that fit a device's registers.
template <class F>
void for_each_norm_shape(const F& f) {
  for_each_shape(f);
  for (const Index width : {widest_tile - tile_columns, widest_tile, widest_tile + tile_columns})
    f(7, width, "7 x " + std::to_string(width));
}

template <class T>
class Layernorm : public testing::Test {};
TYPED_TEST_SUITE(Layernorm, Elements, );

template <class T>
class Rmsnorm : public testing::Test {};
TYPED_TEST_SUITE(Rmsnorm, Elements, );

/// x begins `offset` elements behind an address at which packs may begin.
template <class T>
void check_layernorm_forward(Index rows, Index width, Index offset, const std::string& name) {
  const auto all = numbers<T>(offset + rows * width, 1), w = numbers<T>(width, 2),
             b = numbers<T>(width, 3);
  const T* x = all.data() + offset;
  const Guarded<T> input(all), weight(w), bias(b), output(rows * width);
  const Guarded<float> mean(rows), rstd(rows);
  layernorm_forward<T>(Execution(), Matrix<const T>(input.data() + offset, rows, width),
                       weight.vector(), bias.vector(), eps, output.matrix(rows, width),
                       mean.vector(), rstd.vector());
  std::vector<Bounded> y, m, r;
  for (Index i = 0; i < rows; ++i) {
    const Statistics s = statistics(Norm::layer, x + i * width, width);
    m.push_back(s.mean);
    r.push_back(s.rstd);
    for (Index j = 0; j < width; ++j)
      y.push_back(normalised(s, x[i * width + j], w[j], as_double(b[j])));
  }
  expect_close(output.host(), y, name + " y");
  expect_close(mean.host(), m, name + " mean");
  expect_close(rstd.host(), r, name + " rstd");
}

TYPED_TEST(Layernorm, ForwardMatchesThePlainLoop) {
  for_each_norm_shape([](Index rows, Index width, const std::string& name) {
    check_layernorm_forward<TypeParam>(rows, width, 0, name);
  });
  check_layernorm_forward<TypeParam>(7, 64, 1, "rows between two packs");
}

TYPED_TEST(Rmsnorm, ForwardMatchesThePlainLoop) {
  using T = TypeParam;
  for_each_norm_shape([](Index rows, Index width, const std::string& name) {
    const auto x = numbers<T>(rows * width, 1), w = numbers<T>(width, 2);
    const Guarded<T> input(x), weight(w), output(rows * width);
    const Guarded<float> rstd(rows);
    rmsnorm_forward<T>(Execution(), input.matrix(rows, width), weight.vector(), eps,
                       output.matrix(rows, width), rstd.vector());
    std::vector<Bounded> y, r;
    for (Index i = 0; i < rows; ++i) {
      const Statistics s = statistics(Norm::rms, &x[i * width], width);
      r.push_back(s.rstd);
      for (Index j = 0; j < width; ++j) y.push_back(normalised(s, x[i * width + j], w[j], 0));
    }
    expect_close(output.host(), y, name + " y");
    expect_close(rstd.host(), r, name + " rstd");
  });
}

constexpr NormScale scales[] = {{1, 1}, {0, 0.125F}, {1, 0.3F}};

enum class Addend { none, apart, in_place };

template <class T>
void check_scaled_forward(Index rows, Index width, const NormScale& scale, Addend where,
                          const std::string& name) {
  const auto x = numbers<T>(rows * width, 1), w = numbers<T>(width, 2),
             a = numbers<T>(rows * width, 3);
  const Guarded<T> input(x), weight(w), addend(a);
  Guarded<T> output(rows * width);  // NaN, which no result may contain
  if (where == Addend::in_place) output.set(a);
  const Guarded<float> rstd(rows);
  const auto y = output.matrix(rows, width);
  Matrix<const T> added;
  if (where != Addend::none) added = where == Addend::apart ? addend.matrix(rows, width) : y;
  rmsnorm_forward<T>(Execution(), input.matrix(rows, width), weight.vector(), eps, y, rstd.vector(),
                     scale, added);
  std::vector<Bounded> expected, r;
  for (Index i = 0; i < rows; ++i) {
    const Statistics s = statistics(Norm::rms, &x[i * width], width);
    r.push_back(s.rstd);
    for (Index j = i * width; j < (i + 1) * width; ++j) {
      const double onto = where == Addend::none ? 0 : as_double(a[j]);
      expected.push_back(normalised(s, x[j], w[j - i * width], onto, {scale}));
    }
  }
  expect_close(output.host(), expected, name + " y");
  expect_close(rstd.host(), r, name + " rstd");
  EXPECT_TRUE(tests::same_bits(addend.host(), a)) << name;
}

TYPED_TEST(Rmsnorm, ForwardScalesAndAddsWithOneRounding) {
  for_each_norm_shape([](Index rows, Index width, const std::string& name) {
    for (const NormScale& scale : scales)
      check_scaled_forward<TypeParam>(rows, width, scale, Addend::none, name + " scaled");
    for (const Addend where : {Addend::apart, Addend::in_place})
      check_scaled_forward<TypeParam>(rows, width, scales[2], where, name + " added");
  });
}

TYPED_TEST(Rmsnorm, RoundsOnceAtTheEnd) {
  using T = TypeParam;
  const Index width = 257;
  const auto x = numbers<T>(width, 1), w = numbers<T>(width, 2);
  const Guarded<T> input(x), weight(w), output(width);
  const Guarded<float> rstd(1);
  rmsnorm_forward<T>(Execution(), input.matrix(1, width), weight.vector(), eps,
                     output.matrix(1, width), rstd.vector());
  const float r = rstd.host()[0];
  std::vector<T> once, twice;
  for (Index j = 0; j < width; ++j) {
    const float normal = static_cast<float>(x[j]) * r, wj = static_cast<float>(w[j]);
    once.push_back(static_cast<T>(normal * wj));
    twice.push_back(static_cast<T>(static_cast<float>(static_cast<T>(normal)) * wj));
  }
  EXPECT_TRUE(tests::same_bits(output.host(), once));
  EXPECT_EQ(tests::same_bits(once, twice), dtype_of<T> == Dtype::fp32) << "the test sees nothing";
}

struct Gradients {
  std::vector<Bounded> dx, dweight, dbias;
};

/// RMSNorm has no `mean`. Each value of a row has at most 9 roundings, and those of the scale, in
/// addition to those of the row's sums. A column's sum has one term per row, in any grouping, and
/// the previous value.
template <class T>
Gradients reference(Index rows, Index width, const std::vector<T>& x, const std::vector<T>& w,
                    const std::vector<float>& mean, const std::vector<float>& rstd,
                    const std::vector<T>& dy, Accumulate dx_mode, const std::vector<T>& dx_before,
                    Accumulate mode, const std::vector<T>& w_before, const std::vector<T>& b_before,
                    const ExactScale& scale = {}) {
  Gradients out;
  const Index extra = scale.roundings();
  std::vector<double> dw(width), db(width), dw_size(width), db_size(width);
  const auto count = static_cast<double>(width);
  for (Index i = 0; i < rows; ++i) {
    const double m = mean.empty() ? 0 : as_double(mean[i]), r = as_double(rstd[i]);
    double mean_g = 0, mean_gx = 0, size_g = 0, size_gx = 0;
    const auto normal = [&](Index j) { return (as_double(x[i * width + j]) - m) * r; };
    for (Index j = 0; j < width; ++j) {
      const double dyj = as_double(dy[i * width + j]), g = dyj * scale.of(as_double(w[j]));
      if (!mean.empty()) mean_g += g / count;
      mean_gx += g * normal(j) / count;
      if (!mean.empty()) size_g += std::abs(g) / count;
      size_gx += std::abs(g * normal(j)) / count;
      dw[j] += scale.factor() * dyj * normal(j);
      db[j] += dyj;
      dw_size[j] += std::abs(scale.factor() * dyj * normal(j));
      db_size[j] += std::abs(dyj);
    }
    for (Index j = 0; j < width; ++j) {
      const double before = dx_mode == Accumulate::yes ? as_double(dx_before[i * width + j]) : 0;
      const double g = as_double(dy[i * width + j]) * scale.of(as_double(w[j]));
      const double value = before + r * (g - mean_g - normal(j) * mean_gx);
      const double size = r * (std::abs(g) + size_g + std::abs(normal(j)) * size_gx);
      out.dx.push_back(
          stored<T>(value, gamma(width + 9 + extra) * size + gamma(2) * (std::abs(before) + size)));
    }
  }
  for (Index j = 0; j < width; ++j) {
    const double add = mode == Accumulate::yes ? 1 : 0;
    const double w0 = add * as_double(w_before[j]), b0 = add * as_double(b_before[j]);
    out.dweight.push_back(
        stored<T>(w0 + dw[j], gamma(rows + 5 + extra) * (dw_size[j] + std::abs(w0))));
    out.dbias.push_back(stored<T>(b0 + db[j], gamma(rows + 2) * (db_size[j] + std::abs(b0))));
  }
  return out;
}

template <class T>
void check_layernorm_backward(Index rows, Index width, Accumulate dx_mode, Accumulate mode,
                              const std::string& name) {
  const auto x = numbers<T>(rows * width, 1), w = numbers<T>(width, 2),
             dy = numbers<T>(rows * width, 3);
  const auto dx0 = numbers<T>(rows * width, 4), dw0 = numbers<T>(width, 5),
             db0 = numbers<T>(width, 6);
  std::vector<float> mean, rstd;
  for (Index i = 0; i < rows; ++i) {
    const Statistics s = statistics(Norm::layer, &x[i * width], width);
    mean.push_back(static_cast<float>(s.mean.value));
    rstd.push_back(static_cast<float>(s.rstd.value));
  }
  const Guarded<T> input(x), weight(w), gradient(dy);
  const Guarded<float> means(mean), rstds(rstd), partial(row_groups * 2 * width);
  // Results to be overwritten start as NaN, which exposes a kernel that adds.
  Guarded<T> dx(rows * width), dweight(width), dbias(width);
  if (dx_mode == Accumulate::yes) dx.set(dx0);
  if (mode == Accumulate::yes) dweight.set(dw0);
  if (mode == Accumulate::yes) dbias.set(db0);
  layernorm_backward<T>(
      Execution(), {input.matrix(rows, width), weight.vector(), means.vector(), rstds.vector()},
      gradient.matrix(rows, width),
      {dx.matrix(rows, width), dx_mode, dweight.vector(), dbias.vector(), mode},
      partial.matrix(row_groups, 2 * width));
  const auto expected = reference(rows, width, x, w, mean, rstd, dy, dx_mode, dx0, mode, dw0, db0);
  expect_close(dx.host(), expected.dx, name + " dx");
  expect_close(dweight.host(), expected.dweight, name + " dweight");
  expect_close(dbias.host(), expected.dbias, name + " dbias");
}

/// The sums of the rows of dx before and after LayerNorm's backward.
template <class T>
void check_sums_of_dx(Index rows, Index width, Accumulate mode, const std::string& name) {
  const auto x = numbers<T>(rows * width, 1), w = numbers<T>(width, 2),
             dy = numbers<T>(rows * width, 3), dx0 = numbers<T>(rows * width, 4);
  const auto before = numbers<T>(width, 5), after = numbers<T>(width, 6);
  const Guarded<T> input(x), weight(w), gradient(dy);
  const Guarded<float> mean(numbers<float>(rows, 7)), rstd(numbers<float>(rows, 8)),
      partial(row_groups * layernorm_sums(width, true)), plain(row_groups * 2 * width);
  const Guarded<T> dx(dx0), alone(dx0);
  Guarded<T> dweight(width), dbias(width), dw(width), db(width), dx_before(width), dx_after(width);
  if (mode == Accumulate::yes) {
    for (Guarded<T>* out : {&dweight, &dbias, &dw, &db}) out->set(before);
    dx_before.set(before);
    dx_after.set(after);
  }
  const LayerNormInput<T> in{input.matrix(rows, width), weight.vector(), mean.vector(),
                             rstd.vector()};
  layernorm_backward<T>(Execution(), in, gradient.matrix(rows, width),
                        {dx.matrix(rows, width), Accumulate::yes, dweight.vector(), dbias.vector(),
                         mode, dx_before.vector(), dx_after.vector()},
                        partial.matrix(row_groups, layernorm_sums(width, true)));
  layernorm_backward<T>(
      Execution(), in, gradient.matrix(rows, width),
      {alone.matrix(rows, width), Accumulate::yes, dw.vector(), db.vector(), mode},
      plain.matrix(row_groups, 2 * width));
  EXPECT_TRUE(tests::same_bits(dx.host(), alone.host())) << name;
  EXPECT_TRUE(tests::same_bits(dweight.host(), dw.host())) << name;
  EXPECT_TRUE(tests::same_bits(dbias.host(), db.host())) << name;
  // The same bits as the sums of rows that it replaces.
  const Guarded<float> scratch(row_groups * width);
  const auto expect_sum = [&](const Guarded<T>& of, const std::vector<T>& onto,
                              const Guarded<T>& found, const char* which) {
    Guarded<T> expected(width);
    if (mode == Accumulate::yes) expected.set(onto);
    sum_rows<T>(Execution(), of.matrix(rows, width), mode, expected.vector(),
                scratch.matrix(row_groups, width));
    EXPECT_TRUE(tests::same_bits(found.host(), expected.host())) << name << ' ' << which;
  };
  expect_sum(Guarded<T>(dx0), before, dx_before, "before");
  expect_sum(dx, after, dx_after, "after");
}

/// As above. `partial` is wider than necessary.
template <class T>
void check_rmsnorm_backward(Index rows, Index width, Accumulate dx_mode, Accumulate mode,
                            const std::string& name, const NormScale& scale = {}) {
  const auto x = numbers<T>(rows * width, 1), w = numbers<T>(width, 2),
             dy = numbers<T>(rows * width, 3);
  const auto dx0 = numbers<T>(rows * width, 4), dw0 = numbers<T>(width, 5);
  std::vector<float> rstd;
  for (Index i = 0; i < rows; ++i) {
    const Statistics s = statistics(Norm::rms, &x[i * width], width);
    rstd.push_back(static_cast<float>(s.rstd.value));
  }
  const Guarded<T> input(x), weight(w), gradient(dy);
  const Guarded<float> rstds(rstd), partial(row_groups * (width + 3));
  Guarded<T> dx(rows * width), dweight(width);
  if (dx_mode == Accumulate::yes) dx.set(dx0);
  if (mode == Accumulate::yes) dweight.set(dw0);
  rmsnorm_backward<T>(
      Execution(), {input.matrix(rows, width), weight.vector(), rstds.vector(), scale},
      gradient.matrix(rows, width), {dx.matrix(rows, width), dx_mode, dweight.vector(), mode},
      partial.matrix(row_groups, width + 3));
  const auto expected = reference(rows, width, x, w, {}, rstd, dy, dx_mode, dx0, mode, dw0,
                                  std::vector<T>(width), {scale});
  expect_close(dx.host(), expected.dx, name + " dx");
  expect_close(dweight.host(), expected.dweight, name + " dweight");
}

TYPED_TEST(Layernorm, BackwardMatchesThePlainLoop) {
  for_each_norm_shape([](Index rows, Index width, const std::string& name) {
    check_layernorm_backward<TypeParam>(rows, width, Accumulate::no, Accumulate::no, name);
  });
}

TYPED_TEST(Layernorm, BackwardAddsWhereAsked) {
  for_each_norm_shape([](Index rows, Index width, const std::string& name) {
    check_layernorm_backward<TypeParam>(rows, width, Accumulate::yes, Accumulate::no,
                                        name + " dx added");
    check_layernorm_backward<TypeParam>(rows, width, Accumulate::no, Accumulate::yes,
                                        name + " weights added");
    check_layernorm_backward<TypeParam>(rows, width, Accumulate::yes, Accumulate::yes,
                                        name + " all added");
  });
}

TYPED_TEST(Layernorm, BackwardSumsTheRowsOfDx) {
  for_each_norm_shape([](Index rows, Index width, const std::string& name) {
    check_sums_of_dx<TypeParam>(rows, width, Accumulate::no, name);
    check_sums_of_dx<TypeParam>(rows, width, Accumulate::yes, name + " added");
  });
}

// Groups of more rows than a device's team processes at a time.
constexpr Index norm_rows = 17 * row_groups + 5;

TYPED_TEST(Layernorm, BackwardOfManyRowsMatchesThePlainLoop) {
  check_layernorm_backward<TypeParam>(norm_rows, 8, Accumulate::yes, Accumulate::no, "many rows");
  check_sums_of_dx<TypeParam>(norm_rows, 8, Accumulate::yes, "many rows");
}

TYPED_TEST(Rmsnorm, BackwardOfManyRowsMatchesThePlainLoop) {
  check_rmsnorm_backward<TypeParam>(norm_rows, 8, Accumulate::no, Accumulate::yes, "many rows");
}

TYPED_TEST(Rmsnorm, BackwardMatchesThePlainLoop) {
  for_each_norm_shape([](Index rows, Index width, const std::string& name) {
    check_rmsnorm_backward<TypeParam>(rows, width, Accumulate::no, Accumulate::no, name);
  });
}

TYPED_TEST(Rmsnorm, BackwardOfAScaledNormMatchesThePlainLoop) {
  for_each_norm_shape([](Index rows, Index width, const std::string& name) {
    for (const NormScale& scale : scales)
      check_rmsnorm_backward<TypeParam>(rows, width, Accumulate::no, Accumulate::no, name, scale);
    check_rmsnorm_backward<TypeParam>(rows, width, Accumulate::yes, Accumulate::yes,
                                      name + " all added", scales[2]);
  });
}

TYPED_TEST(Rmsnorm, BackwardAddsWhereAsked) {
  for_each_norm_shape([](Index rows, Index width, const std::string& name) {
    check_rmsnorm_backward<TypeParam>(rows, width, Accumulate::yes, Accumulate::no,
                                      name + " dx added");
    check_rmsnorm_backward<TypeParam>(rows, width, Accumulate::no, Accumulate::yes,
                                      name + " weights added");
    check_rmsnorm_backward<TypeParam>(rows, width, Accumulate::yes, Accumulate::yes,
                                      name + " all added");
  });
}

}  // namespace

}  // namespace kzero::kernels
