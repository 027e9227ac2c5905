#include "kernels/expert_rows.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "support/threads.hpp"
#include "unit/kernels/cases.hpp"
#include "unit/kernels/routing_cases.hpp"

namespace kzero::kernels {

namespace {

constexpr std::array<Index, 5> row_widths{1, 31, 48, 257, 520};

/// The sorted choices of a case, on the device and on the host.
struct SortedCase {
  SortedCase(const RoutingCase& of, const std::vector<std::int32_t>& experts)
      : c(of), places(of.choices()), choices(max_sorted_rows(of.rows, of.experts, of.chosen)) {
    const Guarded<std::int32_t> chosen(experts), begin(of.experts + 1);
    sort_choices(Execution(), chosen.matrix(of.rows, of.chosen),
                 {places.matrix(of.rows, of.chosen), choices.vector(), begin.vector()});
    Kokkos::fence("kzero::tests::sorted");
    rows = begin.host().back();
    choice_of = choices.host();
    place_of = places.host();
  }

  tensor::Matrix<std::int32_t> all_places() const { return places.matrix(c.rows, c.chosen); }

  RoutingCase c;
  Guarded<std::int32_t> places, choices;
  Index rows = 0;
  std::vector<std::int32_t> choice_of, place_of;
};

/// Calls f(case, width, name) for all choices of all cases that are not too large.
template <class F>
void for_each_sorted_case(const F& f) {
  for (const RoutingCase& c : routing_cases()) {
    if (c.rows > 100) continue;
    for (const auto& [what, experts] : drawn_choices(c)) {
      const SortedCase of(c, experts);
      for (const Index width : row_widths)
        f(of, width, c.name() + ", " + what + ", width " + std::to_string(width));
    }
  }
}

template <class T>
class ExpertRowsOf : public testing::Test {};
TYPED_TEST_SUITE(ExpertRowsOf, Elements, );

TYPED_TEST(ExpertRowsOf, AreGatheredByExpert) {
  using T = TypeParam;
  for_each_sorted_case([](const SortedCase& of, Index width, const std::string& name) {
    const std::vector<T> x = numbers<T>(of.c.rows * width, 1);
    const Guarded<T> in(x), gathered(of.rows * width);
    gather_rows<T>(Execution(), in.matrix(of.c.rows, width), of.choices.vector(), of.c.chosen,
                   gathered.matrix(of.rows, width));
    Kokkos::fence("kzero::tests::gathered");
    std::vector<T> expected(of.rows * width, T(0.0F));
    for (Index r = 0; r < of.rows; ++r) {
      if (of.choice_of[r] < 0) continue;
      std::copy_n(x.begin() + of.choice_of[r] / of.c.chosen * width, width,
                  expected.begin() + r * width);
    }
    EXPECT_TRUE(tests::same_bits(gathered.host(), expected)) << name;
  });
}

/// Which operands combine_rows has.
struct CombinedWith {
  bool gates, addend;
};

template <class T>
std::vector<T> combined_rows(const Execution& exec, const SortedCase& of, Index width,
                             const CombinedWith& has, const std::vector<T>& rows,
                             const std::vector<float>& gates, const std::vector<T>& addend) {
  const Guarded<T> in(rows), y(addend);
  const Guarded<float> factors(gates);
  const Matrix<T> out = y.matrix(of.c.rows, width);
  combine_rows<T>(exec, in.matrix(of.rows, width), of.all_places(),
                  has.gates ? Matrix<const float>(factors.matrix(of.c.rows, of.c.chosen))
                            : Matrix<const float>(),
                  has.addend ? Matrix<const T>(out) : Matrix<const T>(), out);
  exec.fence("kzero::tests::combined");
  return y.host();
}

TYPED_TEST(ExpertRowsOf, AreCombinedByRow) {
  using T = TypeParam;
  for_each_sorted_case([](const SortedCase& of, Index width, const std::string& name) {
    const std::vector<T> rows = numbers<T>(of.rows * width, 1),
                         addend = numbers<T>(of.c.rows * width, 2);
    const std::vector<float> gates = numbers<float>(of.c.choices(), 3);
    for (const CombinedWith has : {CombinedWith{true, true}, {true, false}, {false, true}}) {
      std::vector<Bounded> expected;
      for (Index i = 0; i < of.c.rows; ++i) {
        for (Index column = 0; column < width; ++column) {
          double sum = has.addend ? tests::as_double(addend[i * width + column]) : 0;
          double size = std::abs(sum);
          for (Index j = 0; j < of.c.chosen; ++j) {
            const Index choice = i * of.c.chosen + j;
            const double term = tests::as_double(rows[of.place_of[choice] * width + column]) *
                                (has.gates ? static_cast<double>(gates[choice]) : 1);
            sum += term, size += std::abs(term);
          }
          expected.push_back(stored<T>(sum, gamma(of.c.chosen + 2) * size));
        }
      }
      expect_close(combined_rows<T>(Execution(), of, width, has, rows, gates, addend), expected,
                   name);
    }
  });
}

// Without factors there is one rounding for each term, in any build.
TEST(ExpertRowSums, AreAddedInTheOrderOfTheChoices) {
  const RoutingCase c{65, 60, 8};
  const SortedCase of(c, draw_choices(c, 0, 60));
  constexpr Index width = 77;
  const std::vector<float> rows = numbers<float>(of.rows * width, 1),
                           addend = numbers<float>(c.rows * width, 2);
  std::vector<float> expected = addend;
  for (Index at = 0; at < c.rows * width; ++at) {
    for (Index j = 0; j < c.chosen; ++j)
      expected[at] += rows[of.place_of[at / width * c.chosen + j] * width + at % width];
  }
  for (const Execution& exec : tests::thread_counts()) {
    EXPECT_TRUE(tests::same_bits(combined_rows<float>(exec, of, width, {false, true}, rows,
                                                      std::vector<float>(c.choices()), addend),
                                 expected));
  }
}

/// What gate_backward leaves.
template <class T>
struct GateGradients {
  std::vector<T> activated, d;
  std::vector<float> dgates;
};

template <class T>
GateGradients<T> gate_gradients(const Execution& exec, const SortedCase& of, Index width,
                                Index stride, const std::vector<T>& activated,
                                const std::vector<T>& d, const std::vector<float>& gates) {
  const Guarded<T> a(activated), dy(d);
  const Guarded<float> factors(gates), dgates(of.c.choices());
  gate_backward<T>(exec, of.choices.vector(), factors.matrix(of.c.rows, of.c.chosen),
                   a.matrix(of.rows, width), dy.matrix(of.rows, stride),
                   dgates.matrix(of.c.rows, of.c.chosen));
  exec.fence("kzero::tests::gates");
  return {a.host(), dy.host(), dgates.host()};
}

TYPED_TEST(ExpertRowsOf, GradientsOfGatesMatchThePlainLoop) {
  using T = TypeParam;
  for_each_sorted_case([](const SortedCase& of, Index width, const std::string& name) {
    const Index stride = width + width % 3;
    const std::vector<T> activated = numbers<T>(of.rows * width, 1),
                         d = numbers<T>(of.rows * stride, 2);
    const std::vector<float> gates = numbers<float>(of.c.choices(), 3);
    std::vector<Bounded> dgates(of.c.choices()), weighed_activated, weighed_d;
    for (Index r = 0; r < of.rows; ++r) {
      const std::int32_t choice = of.choice_of[r];
      const double gate = choice < 0 ? 1 : static_cast<double>(gates[choice]);
      for (Index j = 0; j < stride; ++j) {
        const double dj = tests::as_double(d[r * stride + j]);
        const bool is_weighed = choice >= 0 && j < width;
        weighed_d.push_back(is_weighed ? stored<T>(dj * gate, u * std::abs(dj * gate))
                                       : Bounded{dj, 0});
        if (j >= width) continue;
        const double aj = tests::as_double(activated[r * width + j]);
        weighed_activated.push_back(is_weighed ? stored<T>(aj * gate, u * std::abs(aj * gate))
                                               : Bounded{aj, 0});
        if (choice < 0) continue;
        dgates[choice].value += aj * dj;
        dgates[choice].error += gamma(width) * std::abs(aj * dj);
      }
    }
    const auto found = gate_gradients<T>(Execution(), of, width, stride, activated, d, gates);
    expect_close(found.dgates, dgates, name + ": dgates");
    expect_close(found.activated, weighed_activated, name + ": activated");
    expect_close(found.d, weighed_d, name + ": d");
  });
}

// A gate's gradient has the same bits in any sorted row, next to any others.
TEST(ExpertRowSums, GradientsOfGatesDoNotDependOnTheirPlace) {
  constexpr Index width = 203, stride = 207;
  const RoutingCase c{65, 16, 4};
  const std::vector<float> row = numbers<float>(width, 1), d_row = numbers<float>(stride, 2);
  for (const auto& [what, experts] : drawn_choices(c)) {
    const SortedCase of(c, experts);
    std::vector<float> activated, d;
    for (Index r = 0; r < of.rows; ++r) {
      activated.insert(activated.end(), row.begin(), row.end());
      d.insert(d.end(), d_row.begin(), d_row.end());
    }
    for (const Execution& exec : tests::thread_counts()) {
      const auto found = gate_gradients<float>(exec, of, width, stride, activated, d,
                                               std::vector<float>(c.choices(), 0.5F));
      EXPECT_EQ(found.dgates, std::vector<float>(c.choices(), found.dgates[0])) << what;
    }
  }
}

// As with a list of the rows themselves.
TEST(ExpertRowSums, WithoutAListHaveEachRowOnce) {
  constexpr Index rows = 37, width = 21;
  std::vector<std::int32_t> numbers_of_rows(rows);
  std::iota(numbers_of_rows.begin(), numbers_of_rows.end(), 0);
  const Guarded<std::int32_t> list(numbers_of_rows);
  const std::vector<float> x = numbers<float>(rows * width, 1), d = numbers<float>(rows * width, 2),
                           gates = numbers<float>(rows, 3);
  const auto results = [&](bool has_list) {
    const Guarded<float> a(x), dy(d), y(d), factors(gates), dgates(rows);
    const Matrix<float> out = y.matrix(rows, width);
    combine_rows<float>(
        Execution(), a.matrix(rows, width),
        has_list ? Matrix<const std::int32_t>(list.matrix(rows, 1)) : Matrix<const std::int32_t>(),
        factors.matrix(rows, 1), out, out);
    gate_backward<float>(
        Execution(),
        has_list ? Vector<const std::int32_t>(list.vector()) : Vector<const std::int32_t>(),
        factors.matrix(rows, 1), a.matrix(rows, width), dy.matrix(rows, width),
        dgates.matrix(rows, 1));
    Kokkos::fence("kzero::tests::listed");
    return std::vector{y.host(), a.host(), dy.host(), dgates.host()};
  };
  const auto found = results(false), expected = results(true);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(tests::same_bits(found[i], expected[i])) << i;
}

}  // namespace

}  // namespace kzero::kernels
