#include "kernels/host/transpose.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/numbers.hpp"

namespace kzero::kernels {

namespace {

TEST(HostTranspose, MovesEveryElement) {
  for (const Index down : {1, 3}) {
    for (const Index across : {1, 4}) {
      const Index rows = down * host_lanes, columns = across * host_lanes;
      const Index from_stride = columns + 3, to_stride = rows + 5;
      const auto from = tests::numbers<float>(rows * from_stride, 1);
      const auto before = tests::numbers<float>(columns * to_stride, 2);
      std::vector<float> to = before;
      transpose(rows, columns, from.data(), from_stride, to.data(), to_stride);
      for (Index j = 0; j < columns; ++j) {
        for (Index i = 0; i < to_stride; ++i)
          EXPECT_EQ(to[j * to_stride + i],
                    i < rows ? from[i * from_stride + j] : before[j * to_stride + i]);
      }
    }
  }
}

}  // namespace

}  // namespace kzero::kernels
