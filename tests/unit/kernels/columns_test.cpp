// Columns of several matrices in parts: split and joined again, against plain loops.
#include "kernels/columns.hpp"

#include <gtest/gtest.h>

#include "support/guarded.hpp"
#include "support/numbers.hpp"
#include "support/same_bits.hpp"

namespace kzero::kernels {
namespace {

using tests::Guarded;
using tests::numbers;

constexpr Index rank_parts = 4;

/// The columns of a matrix. `copies` neighbouring parts get the same ones.
struct Shape {
  Index width, copies;

  Index part() const { return width * copies / rank_parts; }
};

template <class T>
class ColumnsOf : public testing::Test {};

using Precisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(ColumnsOf, Precisions);

/// Queries, keys and values, the last two with fewer heads than parts.
template <class T>
void check(Index rows, const Shape (&shapes)[3], Index more) {
  std::vector<std::vector<T>> values;
  std::vector<std::unique_ptr<Guarded<T>>> matrices;
  SideBySide<const T> from{.matrix = {}, .rows = rows};
  Index width = 0;
  for (int m = 0; m < 3; ++m) {
    const Index stride = shapes[m].width + more;
    values.push_back(numbers<T>(rows * stride, static_cast<std::uint64_t>(m + 1)));
    matrices.push_back(std::make_unique<Guarded<T>>(values.back()));
    from.matrix[m] = {matrices.back()->data(), stride, shapes[m].width, shapes[m].copies};
    width += shapes[m].part();
  }
  EXPECT_EQ(from.part(rank_parts), width);
  const Guarded<T> split(rank_parts * rows * width);
  split_columns<T>({}, from, rank_parts, split.vector());
  Kokkos::fence("kzero::tests::split");
  std::vector<T> expected;
  for (Index part = 0; part < rank_parts; ++part) {
    for (Index i = 0; i < rows; ++i) {
      for (int m = 0; m < 3; ++m) {
        const Index own = shapes[m].part(), first = part / shapes[m].copies * own;
        for (Index j = 0; j < own; ++j)
          expected.push_back(values[m][i * (shapes[m].width + more) + first + j]);
      }
    }
  }
  EXPECT_TRUE(tests::same_bits(split.host(), expected));

  const std::vector<T> gradients = numbers<T>(rank_parts * rows * width, 9);
  const Guarded<T> arrived(gradients);
  SideBySide<T> to{.matrix = {}, .rows = rows};
  for (int m = 0; m < 3; ++m) {
    matrices[m]->set(std::vector<T>(values[m].size()));
    to.matrix[m] = {matrices[m]->data(), from.matrix[m].stride, shapes[m].width, shapes[m].copies};
  }
  join_columns<T>({}, arrived.vector(), rank_parts, to);
  Kokkos::fence("kzero::tests::joined");
  Index before = 0;
  for (int m = 0; m < 3; ++m) {
    const auto found = matrices[m]->host();
    const Index own = shapes[m].part(), copies = shapes[m].copies;
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < shapes[m].width + more; ++j) {
        float sum = 0;
        for (Index copy = 0; j < shapes[m].width && copy < copies; ++copy) {
          const Index part = j / own * copies + copy;
          sum += static_cast<float>(gradients[(part * rows + i) * width + before + j % own]);
        }
        EXPECT_EQ(static_cast<float>(found[i * (shapes[m].width + more) + j]),
                  static_cast<float>(static_cast<T>(sum)))
            << m << ' ' << i << ' ' << j;
      }
    }
    before += own;
  }
}

TYPED_TEST(ColumnsOf, SplitAndJoined) {
  for (const Index rows : {1, 7}) {
    check<TypeParam>(rows, {{12, 1}, {8, 1}, {8, 1}}, 0);
    check<TypeParam>(rows, {{40, 1}, {10, 2}, {10, 2}}, 3);
    check<TypeParam>(rows, {{64, 1}, {5, 4}, {5, 4}}, 1);
    check<TypeParam>(rows, {{24, 1}, {0, 1}, {0, 1}}, 2);
  }
}

}  // namespace
}  // namespace kzero::kernels
