// The columns that the gradient of logits may have in addition to theirs, for the products that
// read it.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/softmax_cross_entropy.hpp"
#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

constexpr Index gradient_rows = 7, gradient_vocab = 101;
constexpr LossTerms gradient_terms{0.037F, 1e-4F};

/// The inputs of a case, in which one row has no target.
struct GradientInputs {
  Guarded<float> logits{numbers<float>(gradient_rows * gradient_vocab, 1, 5)},
      losses{gradient_rows};
  Guarded<float> partials{gradient_rows * partial_softmax_width};
  Guarded<Token> targets{std::vector<Token>{0, 100, 17, -1, 64, 99, 8}};

  tensor::StridedMatrix<float> view() const { return logits.matrix(gradient_rows, gradient_vocab); }
};

template <class Kernels, class T>
struct WithGradient {
  static void compute(const GradientInputs& in, const tensor::StridedMatrix<T>& dlogits) {
    Kernels::template with_gradient<T>({}, in.view(), in.targets.vector(), gradient_terms,
                                       in.losses.vector(), dlogits);
  }
};

template <class Kernels, class T>
struct GradientOfPartials {
  static void compute(const GradientInputs& in, const tensor::StridedMatrix<T>& dlogits) {
    const auto partials = in.partials.matrix(gradient_rows, partial_softmax_width);
    Kernels::partial_softmax({}, in.view(), 0, in.targets.vector(), partials);
    Kernels::template of_partials_with_gradient<T>({}, {partials}, {in.view(), 0},
                                                   in.targets.vector(), gradient_terms,
                                                   in.losses.vector(), dlogits);
  }
};

/// Returns the gradient as it is in memory, with NaN where nothing was written.
template <class Gradient, class T>
std::vector<T> gradient_in_memory(Index columns, Index stride) {
  const Guarded<T> memory(gradient_rows * stride);
  Gradient::compute(GradientInputs(),
                    tensor::strided_matrix(memory.data(), gradient_rows, columns, stride));
  return memory.host();
}

template <class Gradient, class T>
void check_columns() {
  const std::vector<T> expected = gradient_in_memory<Gradient, T>(gradient_vocab, gradient_vocab);
  for (const Index more : {0, 1, 3, 11}) {
    const Index columns = gradient_vocab + more, stride = columns + 2;
    const std::vector<T> found = gradient_in_memory<Gradient, T>(columns, stride);
    for (Index i = 0; i < gradient_rows; ++i) {
      const auto row = found.begin() + i * stride;
      std::vector<T> wide(expected.begin() + i * gradient_vocab,
                          expected.begin() + (i + 1) * gradient_vocab);
      wide.resize(columns, static_cast<T>(0.0F));
      EXPECT_TRUE(tests::same_bits(std::vector<T>(row, row + columns), wide)) << more << ' ' << i;
      for (Index j = columns; j < stride; ++j)
        EXPECT_TRUE(std::isnan(static_cast<float>(row[j]))) << "written between the rows";
    }
  }
}

template <class T>
class GradientColumns : public testing::Test {};
TYPED_TEST_SUITE(GradientColumns, Elements, );

TYPED_TEST(GradientColumns, AreZeroBeyondTheVocabulary) {
  using OfTeams = CrossEntropyBy<RowByTeam>;
  check_columns<WithGradient<CrossEntropyRows, TypeParam>, TypeParam>();
  check_columns<WithGradient<OfTeams, TypeParam>, TypeParam>();
  check_columns<GradientOfPartials<CrossEntropyRows, TypeParam>, TypeParam>();
  check_columns<GradientOfPartials<OfTeams, TypeParam>, TypeParam>();
}

}  // namespace

}  // namespace kzero::kernels
