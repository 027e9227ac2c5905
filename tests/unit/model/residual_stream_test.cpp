#include "model/residual_stream.hpp"

#include <gtest/gtest.h>

#include "kernels/initialize.hpp"
#include "support/device_memory.hpp"

namespace kzero::model {
namespace {

constexpr Index stream_rows = 7, width = 5, layers = 5;

TransformerShape shape() {
  deck::Model model;
  model.layers = layers, model.hidden = width, model.heads = 1, model.vocab = 11;
  return TransformerShape(model, {});
}

/// A stream with offloaded block inputs and `places` buffers on the device.
struct Offloaded {
  explicit Offloaded(Index places)
      : arenas(measured(places), ledger),
        group(arenas, {}, stream_rows, width),
        stream(arenas, shape(), recompute, stream_rows, group, places) {}

  static memory::Arenas measured(Index places) {
    memory::Arenas measuring;
    const TensorGroup<float> group(measuring, {}, stream_rows, width);
    static_cast<void>(
        ResidualStream<float>(measuring, shape(), recompute, stream_rows, group, places));
    return measuring;
  }

  void write(Index i, float value) {
    const Matrix<float>& x = stream.at(i);
    kernels::fill<float>(exec, Vector<float>(x.data(), x.size()), value);
  }
  void expect(Index i, float value) {
    for (const float x : tests::from_device(stream.at(i))) ASSERT_EQ(x, value) << "block " << i;
  }

  static constexpr deck::Recompute recompute{.mode = deck::RecomputeMode::full,
                                             .offload = deck::Offload::host};
  const Execution exec;
  memory::Ledger ledger;
  memory::Arenas arenas;
  TensorGroup<float> group;
  ResidualStream<float> stream;
};

class ResidualStreamPlaces : public testing::TestWithParam<Index> {};

TEST_P(ResidualStreamPlaces, BringBackEveryBlocksInput) {
  Offloaded x(GetParam());
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    const auto value = [&](Index i) { return static_cast<float>(100 * micro_batch + i); };
    x.write(0, value(0));
    for (Index i = 0; i < layers; ++i) {
      x.stream.keep(x.exec, i);
      x.expect(i, value(i));
      x.write(i + 1, value(i + 1));
    }
    if (micro_batch == 1) continue;  // no backward, as in validation
    for (Index i = layers; i-- > 0;) {
      x.stream.restore(x.exec, i);
      x.expect(i, value(i));
    }
  }
}

TEST_P(ResidualStreamPlaces, CostAPlaceEach) {
  const auto bytes = Offloaded::measured(GetParam()).bytes();
  const Index place = round_up(stream_rows * width * 4, 64);
  EXPECT_EQ(bytes[memory::position(memory::Category::activations)], GetParam() * place);
  EXPECT_EQ(bytes[memory::position(memory::Category::offloaded)], layers * place);
}

INSTANTIATE_TEST_SUITE_P(Counts, ResidualStreamPlaces, testing::Values(1, 2));

}  // namespace
}  // namespace kzero::model
