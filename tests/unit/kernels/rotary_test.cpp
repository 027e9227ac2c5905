#include "kernels/rotary.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/kernels/cases.hpp"
#include "unit/kernels/document_cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

constexpr float norm_eps = 1e-6F;

enum class Normed { no, yes };

/// One call: its shapes and inputs, and their values in double. The angles are arbitrary numbers
/// instead of cosines and sines. This exposes swapped entries, and the transpose is not the
/// inverse.
template <class T>
struct RotaryCase {
  RotaryShape shape;
  Index rows;
  std::vector<float> table;
  std::vector<T> qkv, q_weight, k_weight;
  DocumentRows documents{};
  float offset = 0;  // of the weights

  RotaryCase(const RotaryShape& s, Index row_count, Normed normed)
      : shape(s),
        rows(row_count),
        table(numbers<float>(s.sequence * s.head_width, 1)),
        qkv(numbers<T>(row_count * qkv_width(), 2, 3)) {
    if (normed == Normed::no) return;
    q_weight = numbers<T>(s.head_width, 3);
    k_weight = numbers<T>(s.head_width, 4);
  }

  Index qkv_width() const { return shape.rotated_width() + shape.kv_heads * shape.head_width; }
  bool normed() const { return !q_weight.empty(); }
  double weight(Index head, Index j) const {
    return as_double((head < shape.heads ? q_weight : k_weight)[j]) + as_double(offset);
  }
  std::string name() const {
    return std::to_string(rows) + " rows of " + std::to_string(shape.sequence) + " positions, " +
           std::to_string(shape.heads) + " + " + std::to_string(shape.kv_heads) + " heads of " +
           std::to_string(shape.head_width) + (normed() ? ", normed" : "") +
           (offset != 0 ? ", with an offset" : "");
  }
};

/// A head in double, the relative fp32 error of rstd, and the roundings of a weight.
struct Head {
  std::vector<double> x, w, cos, sin;
  double rstd, rstd_error;
  Index weight_roundings;
};

template <class T>
Head head_of(const RotaryCase<T>& c, const std::vector<T>& qkv, Index i, Index head) {
  const Index width = c.shape.head_width, half = width / 2;
  Head h{{}, {}, {}, {}, 1, 0, c.offset != 0 ? 1 : 0};
  double square = 0;
  for (Index j = 0; j < width; ++j) {
    h.x.push_back(as_double(qkv[i * c.qkv_width() + head * width + j]));
    h.w.push_back(c.normed() ? c.weight(head, j) : 1);
    const double angle = as_double(c.table[c.documents.position(i, c.shape.sequence) * width + j]);
    (j < half ? h.cos : h.sin).push_back(angle);
    square += h.x[j] * h.x[j] / static_cast<double>(width);
  }
  if (c.normed()) {
    // For the mean: one rounding per term and two more. d(v^-1/2) = -v^-3/2 / 2 dv, and three
    // roundings.
    const double added = static_cast<double>(norm_eps), error = gamma(width + 2) * square;
    h.rstd = 1 / std::sqrt(square + added);
    h.rstd_error = 0.5 * error / (square - error + added) + gamma(4);
  }
  return h;
}

/// Element j of the head after rotation (direction 1) or inverse rotation (-1), and the sum of its
/// two terms' magnitudes.
struct Turned {
  double value, magnitude;
};

Turned turned(const Head& h, const std::vector<double>& x, Index j, int direction) {
  const Index half = static_cast<Index>(h.cos.size()), pair = j % half;
  const double along = x[j] * h.cos[pair];
  const double across = x[(j + half) % (2 * half)] * h.sin[pair] * direction * (j < half ? -1 : 1);
  return {along + across, std::abs(along) + std::abs(across)};
}

/// Forward: at most two roundings, those of the weight and the error of rstd, then two roundings
/// for the rotation.
template <class T>
std::vector<Bounded> rotated_head(const Head& h) {
  std::vector<double> normed;
  for (std::size_t j = 0; j < h.x.size(); ++j) normed.push_back(h.x[j] * h.rstd * h.w[j]);
  std::vector<Bounded> out;
  for (std::size_t j = 0; j < h.x.size(); ++j) {
    const Turned t = turned(h, normed, static_cast<Index>(j), 1);
    const double relative = h.rstd_error + gamma(4 + h.weight_roundings);
    out.push_back(stored<T>(t.value, relative * t.magnitude));
  }
  return out;
}

/// The gradients of a head whose result has the gradient d: that of x, and a term of the weights'
/// gradient.
struct HeadGradients {
  std::vector<Bounded> dx, dweight;
};

/// Every factor of a term includes the error of rstd once. The sum over the head has one rounding
/// per term and at most 10 more. The rest of an element has at most 10.
template <class T>
HeadGradients head_gradients(const Head& h, const std::vector<double>& d, bool normed) {
  const auto width = static_cast<Index>(d.size());
  std::vector<Turned> g;
  double mean = 0, mean_size = 0;
  for (Index j = 0; j < width; ++j) {
    g.push_back(turned(h, d, j, -1));
    const double factor = h.w[j] * h.x[j] * h.rstd / static_cast<double>(width);
    mean += g[j].value * factor;
    mean_size += g[j].magnitude * std::abs(factor);
  }
  HeadGradients out;
  for (Index j = 0; j < width; ++j) {
    const double normal = h.x[j] * h.rstd, size = g[j].magnitude * std::abs(normal);
    out.dweight.push_back({g[j].value * normal, (h.rstd_error + gamma(4)) * size});
    if (!normed) {
      out.dx.push_back(stored<T>(g[j].value, gamma(2) * g[j].magnitude));
      continue;
    }
    const double value = h.rstd * (g[j].value * h.w[j] - normal * mean);
    const double magnitude =
        h.rstd * (g[j].magnitude * std::abs(h.w[j]) + std::abs(normal) * mean_size);
    const double relative = 3 * h.rstd_error + gamma(width + 20 + h.weight_roundings);
    out.dx.push_back(stored<T>(value, relative * magnitude));
  }
  return out;
}

/// Calls f(case) for all small numbers of heads with every divisor. Also for row counts that are
/// one, prime, odd, and not a multiple of the sequence, and for widths with and without a vector
/// remainder.
template <class T, class F>
void for_each_case(Normed normed, const F& f) {
  for (Index heads = 1; heads <= 5; ++heads) {
    for (Index kv_heads = 1; kv_heads <= heads; ++kv_heads) {
      if (heads % kv_heads == 0) f(RotaryCase<T>({3, heads, kv_heads, 20}, 7, normed));
    }
  }
  for (const Index width : {2, 6, 20, 64, 128}) {
    for (const Index rows : {1, 7, 33, 65}) {
      for (const Index sequence : {1, 13}) f(RotaryCase<T>({sequence, 2, 1, width}, rows, normed));
    }
  }
}

template <class T>
class Rotary : public testing::Test {};
TYPED_TEST_SUITE(Rotary, Elements, );

enum class Where { apart, apart_and_wider, in_place };

/// Columns of the output that are not rotated do not change.
template <class T>
void check_forward(const RotaryCase<T>& c, Where where) {
  const Index width = where == Where::apart             ? c.shape.rotated_width()
                      : where == Where::apart_and_wider ? c.shape.rotated_width() + 3
                                                        : c.qkv_width();
  const auto before = where == Where::in_place ? c.qkv : numbers<T>(c.rows * width, 9);
  const Guarded<float> table(c.table);
  const Guarded<T> qkv(c.qkv), q_weight(c.q_weight), k_weight(c.k_weight), output(before);
  const auto out = output.matrix(c.rows, width);
  const auto in = where == Where::in_place ? out : qkv.matrix(c.rows, c.qkv_width());
  HeadNorms<T> norms;
  if (c.normed()) norms = {q_weight.vector(), k_weight.vector(), norm_eps, c.offset};
  const DeviceDocuments documents(c.documents);
  rotary_forward<T>(Execution(), c.shape, documents.view(),
                    table.matrix(c.shape.sequence, c.shape.head_width), norms, in, out);
  std::vector<Bounded> expected;
  for (const T value : before) expected.push_back({as_double(value), 0});
  for (Index i = 0; i < c.rows; ++i) {
    for (Index head = 0; head < c.shape.heads + c.shape.kv_heads; ++head) {
      const auto values = rotated_head<T>(head_of(c, c.qkv, i, head));
      std::copy(values.begin(), values.end(),
                expected.begin() + i * width + head * c.shape.head_width);
    }
  }
  expect_close(output.host(), expected, c.name());
  EXPECT_TRUE(tests::same_bits(qkv.host(), c.qkv));
}

TYPED_TEST(Rotary, ForwardMatchesThePlainLoop) {
  for_each_case<TypeParam>(Normed::no, [](const auto& c) {
    check_forward(c, Where::apart);
    check_forward(c, Where::apart_and_wider);
    check_forward(c, Where::in_place);
  });
}

TYPED_TEST(Rotary, ForwardWithNormsMatchesThePlainLoop) {
  for_each_case<TypeParam>(Normed::yes, [](const auto& c) {
    check_forward(c, Where::apart);
    check_forward(c, Where::apart_and_wider);
  });
}

/// Sums of the weights' gradients in any order: one rounding per term, one for the previous value,
/// one for the cast.
template <class T>
struct WeightSums {
  std::vector<double> value, size, error;

  explicit WeightSums(Index width) : value(width), size(width), error(width) {}

  void add(const std::vector<Bounded>& terms) {
    for (std::size_t j = 0; j < terms.size(); ++j) {
      value[j] += terms[j].value;
      size[j] += std::abs(terms[j].value) + terms[j].error;
      error[j] += terms[j].error;
    }
  }

  std::vector<Bounded> after(Index count, Accumulate accumulate,
                             const std::vector<T>& before) const {
    std::vector<Bounded> sums;
    for (std::size_t j = 0; j < value.size(); ++j) {
      const double old = accumulate == Accumulate::yes ? as_double(before[j]) : 0;
      sums.push_back(
          stored<T>(old + value[j], error[j] + gamma(count + 2) * (size[j] + std::abs(old))));
    }
    return sums;
  }
};

template <class T>
void check_backward(const RotaryCase<T>& c, Accumulate accumulate) {
  const Index width = c.shape.head_width, heads = c.shape.heads + c.shape.kv_heads;
  const auto d = numbers<T>(c.rows * c.qkv_width(), 5), dq0 = numbers<T>(width, 6),
             dk0 = numbers<T>(width, 7);
  const Guarded<float> table(c.table), partial(row_groups * (2 * width + 1));
  const Guarded<T> qkv(c.qkv), q_weight(c.q_weight), k_weight(c.k_weight), gradient(d);
  Guarded<T> dq(width), dk(width);  // NaN if they are overwritten
  if (accumulate == Accumulate::yes) dq.set(dq0);
  if (accumulate == Accumulate::yes) dk.set(dk0);
  const auto angles = table.matrix(c.shape.sequence, width);
  const auto dqkv = gradient.matrix(c.rows, c.qkv_width());
  const DeviceDocuments documents(c.documents);
  if (c.normed()) {
    rotary_backward<T>(Execution(), c.shape, documents.view(), angles,
                       {q_weight.vector(), k_weight.vector(), norm_eps, c.offset},
                       qkv.matrix(c.rows, c.qkv_width()), dqkv,
                       {dq.vector(), dk.vector(), accumulate},
                       partial.matrix(row_groups, 2 * width + 1));
  } else {
    rotary_backward<T>(Execution(), c.shape, documents.view(), angles, {}, {}, dqkv, {}, {});
  }
  std::vector<Bounded> expected;
  for (const T value : d) expected.push_back({as_double(value), 0});
  WeightSums<T> q_sums(width), k_sums(width);
  for (Index i = 0; i < c.rows; ++i) {
    for (Index head = 0; head < heads; ++head) {
      const Index at = i * c.qkv_width() + head * width;
      std::vector<double> head_d;
      for (Index j = 0; j < width; ++j) head_d.push_back(as_double(d[at + j]));
      const auto g = head_gradients<T>(head_of(c, c.qkv, i, head), head_d, c.normed());
      std::copy(g.dx.begin(), g.dx.end(), expected.begin() + at);
      (head < c.shape.heads ? q_sums : k_sums).add(g.dweight);
    }
  }
  expect_close(gradient.host(), expected, c.name());
  if (!c.normed()) return;
  expect_close(dq.host(), q_sums.after(c.rows * c.shape.heads, accumulate, dq0), c.name() + " dq");
  expect_close(dk.host(), k_sums.after(c.rows * c.shape.kv_heads, accumulate, dk0),
               c.name() + " dk");
}

TYPED_TEST(Rotary, BackwardMatchesThePlainLoop) {
  for_each_case<TypeParam>(Normed::no, [](const auto& c) { check_backward(c, Accumulate::no); });
}

TYPED_TEST(Rotary, BackwardWithNormsMatchesThePlainLoop) {
  for_each_case<TypeParam>(Normed::yes, [](const auto& c) {
    check_backward(c, Accumulate::no);
    check_backward(c, Accumulate::yes);
  });
}

TYPED_TEST(Rotary, NormsAddAnOffsetToTheirWeights) {
  for_each_case<TypeParam>(Normed::yes, [](auto c) {
    c.offset = 1;
    check_forward(c, Where::apart);
    check_backward(c, Accumulate::no);
  });
}

// More rows than one group on any back end, and heads too wide for the sums of many threads.
TYPED_TEST(Rotary, BackwardOfLargerShapesMatchesThePlainLoop) {
  check_backward(RotaryCase<TypeParam>({101, 3, 1, 6}, 3 * row_groups + 5, Normed::yes),
                 Accumulate::no);
  check_backward(RotaryCase<TypeParam>({5, 20, 4, 1030}, 3, Normed::yes), Accumulate::no);
}

TYPED_TEST(Rotary, PositionsRestartInDocuments) {
  for (const Normed normed : {Normed::no, Normed::yes}) {
    for (const Index sequence : {1, 13, 70}) {
      RotaryCase<TypeParam> c({sequence, 2, 1, 20}, 3 * sequence, normed);
      for (const DocumentRows& documents : document_cases(3, sequence)) {
        c.documents = documents;
        check_forward(c, Where::apart);
        check_backward(c, Accumulate::no);
      }
    }
  }
}

TEST(RotaryReference, GradientsAreTheSlopes) {
  // Central differences of sum(d y), with y of order 10: an error of h^2 / 6 times a third
  // derivative below 100, and of 2^-52 * 100 / h.
  const double h = 1e-5;
  for (const Normed normed : {Normed::no, Normed::yes}) {
    const RotaryCase<float> c({3, 2, 1, 6}, 2, normed);
    const Head head = head_of(c, c.qkv, 1, 1);
    std::vector<double> d;
    for (const float value : numbers<float>(6, 5)) d.push_back(static_cast<double>(value));
    const auto total = [&](const std::vector<double>& x, const std::vector<double>& w) {
      Head moved = head;
      moved.x = x;
      moved.w = w;
      double square = 0;
      for (const double value : x) square += value * value / 6;
      if (c.normed()) moved.rstd = 1 / std::sqrt(square + static_cast<double>(norm_eps));
      double sum = 0;
      const auto y = rotated_head<float>(moved);
      for (std::size_t j = 0; j < y.size(); ++j) sum += d[j] * y[j].value;
      return sum;
    };
    const auto g = head_gradients<float>(head, d, c.normed());
    for (std::size_t j = 0; j < 6; ++j) {
      auto x = head.x, w = head.w;
      const auto difference = [&](double& entry) {
        const double at = entry;
        entry = at + h;
        const double above = total(x, w);
        entry = at - h;
        const double below = total(x, w);
        entry = at;
        return (above - below) / (2 * h);
      };
      EXPECT_NEAR(g.dx[j].value, difference(x[j]), 1e-7);
      EXPECT_NEAR(g.dweight[j].value, difference(w[j]), 1e-7);
    }
  }
}

// A row at any position has the bits that rotary_forward gives for that position of a sequence.
template <class T>
void check_positions(Normed normed, float offset = 0) {
  const RotaryCase<T> c({13, 3, 2, 10}, 13, normed);
  const Guarded<float> table(c.table);
  const Guarded<T> q_weight(c.q_weight), k_weight(c.k_weight), qkv(c.qkv);
  const Guarded<T> expected(c.rows * c.shape.rotated_width());
  const HeadNorms<T> norms{q_weight.vector(), k_weight.vector(), norm_eps, offset};
  const auto view = [&](const Guarded<T>& all, Index rows) {
    return tensor::Matrix<T>(all.data(), rows, all.vector().size() / rows);
  };
  rotary_forward<T>(Execution(), c.shape, {}, table.matrix(13, 10), norms, view(qkv, 13),
                    view(expected, 13));
  const std::vector<Index> positions{12, 0, 5, 5, 11};
  std::vector<T> rows, wanted;
  const auto all = expected.host();
  for (const Index position : positions) {
    const auto append = [&](const std::vector<T>& from, Index width, std::vector<T>& to) {
      to.insert(to.end(), from.begin() + position * width, from.begin() + (position + 1) * width);
    };
    append(c.qkv, c.qkv_width(), rows);
    append(all, c.shape.rotated_width(), wanted);
  }
  const Guarded<T> picked(rows), rotated(static_cast<Index>(wanted.size()));
  const Guarded<Index> at(positions);
  rotary_at<T>(Execution(), c.shape, table.matrix(13, 10), at.vector(), norms, view(picked, 5),
               view(rotated, 5));
  EXPECT_TRUE(tests::same_bits(rotated.host(), wanted)) << c.name();
}

TYPED_TEST(Rotary, RowsAtAnyPositionsHaveTheSameBits) {
  check_positions<TypeParam>(Normed::no);
  check_positions<TypeParam>(Normed::yes);
  check_positions<TypeParam>(Normed::yes, 1);
}

}  // namespace

}  // namespace kzero::kernels
