#include "support/head.hpp"
#include "support/model_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/numbers.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tests {
namespace {

using tensor::Accumulate;

/// The largest difference of two sums, in steps between neighbouring numbers of T, minus the
/// difference that their fp32 additions may cause. A column sum has one term per row, and the
/// number that it is added to. A gradient with respect to a logit is at most 1, and a normalised
/// element with bias at most sqrt(D) + 1.
template <class T>
double largest_distance(const std::vector<T>& a, const std::vector<T>& b) {
  const double largest_term = std::sqrt(static_cast<double>(small_model().hidden)) + 1;
  const double reordered =
      2 * gamma(head_rows + 1) * static_cast<double>(head_rows + 1) * largest_term;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = as_double(a[i]), y = as_double(b[i]);
    const double size = std::max({std::abs(x), std::abs(y), 0x1p-14});
    const double step = 2 * round_off<T> * std::exp2(std::floor(std::log2(size)));
    largest = std::max(largest, (std::abs(x - y) - reordered) / step);
  }
  return largest;
}

template <class T>
class HeadGradient : public testing::Test {};
using SixteenBits = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(HeadGradient, SixteenBits, );

// Sums of one chunk and of many chunks differ in fp32 by their order, which changes a 16-bit
// rounding by at most one step. Rounding each chunk, as a context without the fp32 sum does,
// changes it by more.
TYPED_TEST(HeadGradient, IsRoundedOnceWhateverTheChunks) {
  using T = TypeParam;
  const Index count = small_model().vocab * small_model().hidden;
  std::mt19937 random(7);
  const std::vector<T> before = draw<T>(random, count, 0.5F);
  const auto gemm = tensor::make_gemm(deck::GemmBackend::automatic);
  const Head<T> whole(*gemm, head_rows);
  Head<T> rounding(*gemm, 5);
  rounding.context().output_gradient = nullptr;
  for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
    const auto expected = whole.run(accumulate, before).doutput;
    for (const Index chunk : {5, 64}) {
      const auto found = Head<T>(*gemm, chunk).run(accumulate, before).doutput;
      EXPECT_LE(largest_distance(found, expected), 1) << chunk << " rows at once";
    }
    EXPECT_GT(largest_distance(rounding.run(accumulate, before).doutput, expected), 1)
        << "the case does not show roundings between";
  }
}

template <class T>
class HeadLogits : public testing::Test {};
using AllTypes = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(HeadLogits, AllTypes, );

/// Compares bits. A value read from between rows of logits would be NaN; one written there would be
/// a number.
template <class Head, class Results>
void expect_same(const Head& head, const Results& found, const Results& expected,
                 const std::string& name) {
  EXPECT_TRUE(same_bits(found.losses, expected.losses)) << name;
  EXPECT_TRUE(same_bits(found.doutput, expected.doutput)) << name;
  EXPECT_TRUE(same_bits(found.dx, expected.dx)) << name;
  const auto gaps = head.between_rows();
  EXPECT_TRUE(std::ranges::all_of(gaps, [](float x) { return std::isnan(x); })) << name;
}

TYPED_TEST(HeadLogits, GiveTheSameBitsWithRowsApartAndMoreColumns) {
  using T = TypeParam;
  const Index vocab = 53;
  const std::vector<T> before(vocab * small_model().hidden, static_cast<T>(0.5F));
  tensor::ReferenceGemm gemm;
  for (const Index chunk : {5, 64, 128}) {
    const auto expected = Head<T>(gemm, chunk, vocab).run(Accumulate::yes, before);
    for (const Index columns : {53, 56, 64}) {
      const Head<T> apart(gemm, chunk, vocab, 64, columns);
      const auto name = std::to_string(chunk) + " rows of " + std::to_string(columns);
      expect_same(apart, apart.run(Accumulate::yes, before), expected, name);
    }
  }
}

// Also chunks that hold more rows than there are, and slices that do not divide a chunk or its last
// rows.
TYPED_TEST(HeadLogits, GiveTheSameBitsInSlicesOfAnySize) {
  using T = TypeParam;
  const Index vocab = 53;
  const std::vector<T> before(vocab * small_model().hidden, static_cast<T>(0.5F));
  tensor::ReferenceGemm gemm;
  const Guarded<float> weights(numbers<float>(head_rows, 1, 3));
  const kernels::LossTerms terms{.scale = 1, .z_loss = 0, .weights = weights.data()};
  for (const Index chunk : {50, 128, 200}) {
    const auto expected = Head<T>(gemm, chunk, vocab).run(Accumulate::yes, before, terms);
    for (const Index slice : {1, 7, 32, 49}) {
      const Head<T> sliced(gemm, small_model(vocab), {chunk, 64, 56, slice});
      const auto name = std::to_string(chunk) + " rows by " + std::to_string(slice);
      expect_same(sliced, sliced.run(Accumulate::yes, before, terms), expected, name);
    }
  }
}

model::LogitsChunk chunk_of(Index vocab, Index rows, bool on_device, model::TensorRank rank = {},
                            Dtype type = Dtype::bf16) {
  return model::logits_chunk(rows, model::TransformerShape(small_model(vocab), rank), type,
                             on_device);
}

TEST(LogitsChunk, BeginsEveryRowAtAMultipleOf128BytesOnDevices) {
  EXPECT_EQ(chunk_of(50257, 32768, true).stride, 50304);
  EXPECT_EQ(chunk_of(50304, 32768, true).stride, 50304);
  EXPECT_EQ(chunk_of(50257, 32768, false).stride, 50257);
  // 50257 = 4 * 12564 + 1, so the first of four ranks has one more row.
  EXPECT_EQ(chunk_of(50257, 32768, true, {0, 4}).stride, 12608);
  EXPECT_EQ(chunk_of(50257, 32768, true, {3, 4}).stride, 12608);
  EXPECT_EQ(chunk_of(50257, 32768, false, {0, 4}).stride, 12565);
  EXPECT_EQ(chunk_of(50257, 32768, false, {3, 4}).stride, 12564);
}

TEST(LogitsChunk, HasColumnsOf16BytesFor16BitsOnDevices) {
  EXPECT_EQ(chunk_of(50257, 32768, true).columns, 50264);
  EXPECT_EQ(chunk_of(50264, 32768, true).columns, 50264);
  EXPECT_EQ(chunk_of(50257, 32768, true, {}, Dtype::fp16).columns, 50264);
  EXPECT_EQ(chunk_of(50257, 32768, true, {}, Dtype::fp32).columns, 50257);
  EXPECT_EQ(chunk_of(50257, 32768, false).columns, 50257);
  EXPECT_EQ(chunk_of(50257, 32768, true, {0, 4}).columns, 12568);  // of 12565
  EXPECT_EQ(chunk_of(50257, 32768, true, {3, 4}).columns, 12568);  // of 12564
  for (const Index vocab : {1, 53, 56, 50257}) {
    const model::TransformerShape shape(small_model(vocab));
    const Index more = chunk_of(vocab, 32768, true).columns - vocab;
    EXPECT_EQ(model::read_after_output(shape, true), more * shape.hidden);
    EXPECT_EQ(model::read_after_output(shape, false), 0);
  }
}

TEST(LogitsChunk, HasThousandsOfRowsOnDevicesAndFewOnHosts) {
  EXPECT_EQ(chunk_of(50257, 32768, true).rows, 4096);
  EXPECT_EQ(chunk_of(50257, 32768, true, {}, Dtype::fp32).rows, 2048);
  EXPECT_EQ(chunk_of(32000, 32768, true).rows, 8192);
  EXPECT_EQ(chunk_of(32000, 32768, true, {}, Dtype::fp32).rows, 4096);
  EXPECT_EQ(chunk_of(151936, 32768, true).rows, 4096);
  EXPECT_EQ(chunk_of(151936, 32768, true, {1, 8}).rows, 8192) << "the rank's part counts";
  EXPECT_EQ(chunk_of(50257, 32768, false).rows, 256);
  EXPECT_EQ(chunk_of(256, 32768, false).rows, 16384);
  for (const bool on_device : {true, false}) {
    EXPECT_EQ(chunk_of(50257, 301, on_device).rows, 151) << "never all of them";
    EXPECT_EQ(chunk_of(50257, 1, on_device).rows, 1);
    EXPECT_EQ(chunk_of(50257, 1, on_device).slice, 1);
  }
}

// The weight [50257,768] is read from memory for each slice, the small model's [50257,24] is not.
TEST(LogitsChunk, IsCutIntoSlicesOnDevices) {
  const auto slice_of = [](Index rows, Index hidden, bool on_device) {
    deck::Model model = small_model(50257);
    model.hidden = hidden;
    return model::logits_chunk(rows, model::TransformerShape(model), Dtype::bf16, on_device).slice;
  };
  EXPECT_EQ(slice_of(32768, 768, true), 1024);
  EXPECT_EQ(slice_of(2048, 768, true), 512);
  EXPECT_EQ(slice_of(512, 768, true), 256) << "the chunk";
  EXPECT_EQ(slice_of(512, 24, true), 64);
  EXPECT_EQ(slice_of(301, 24, true), 38);
  EXPECT_EQ(slice_of(32768, 768, false), 256) << "the chunk";
  EXPECT_EQ(chunk_of(151936, 32768, true, {0, 8}).slice,
            chunk_of(151936, 32768, true, {7, 8}).slice);
}

// Chunks were half as large, with the logits and the gradients of all rows.
TEST(LogitsChunk, TakesNoMoreMemoryThanWithoutSlices) {
  for (const Index vocab : {256, 32000, 50257, 151936}) {
    for (const Index rows : {1, 512, 3000, 4096, 32768}) {
      for (const Dtype type : {Dtype::fp32, Dtype::bf16}) {
        const Index most = vocab <= 32768 ? 4096 : 2048;
        const Index before = std::min(most, ceil_div(rows, 2)) * (type == Dtype::fp32 ? 4 : 6);
        const model::LogitsChunk chunk = chunk_of(vocab, rows, true, {}, type);
        const Index now = chunk.rows * bytes_of(type) + (type == Dtype::fp32 ? 0 : chunk.slice * 4);
        EXPECT_LE(now, before) << rows << " x " << vocab;
      }
    }
  }
}

template <class T>
Index workspace(Index batch, Index sequence, Index vocab, Passes passes = Passes::all) {
  deck::Model m = small_model(vocab);
  m.sequence = sequence;
  memory::Arenas arenas;
  static_cast<void>(ModelParts<T>(arenas, nullptr, m, {batch, 1, passes}));
  return arenas.bytes()[static_cast<std::size_t>(memory::Category::workspace)];
}

constexpr Index more = Index{1} << 16;  // makes the head's scratch larger than the blocks'

TEST(HeadMemory, HasASumInFp32OnlyWhereChunksAreAddedIn16Bits) {
  const auto growth = [&]<class T>(T, Index rows) {
    return workspace<T>(1, rows, 2 * more) - workspace<T>(1, rows, more);
  };
  const Index slice = chunk_of(more, head_rows, !tensor::on_host).slice;
  const Index chunk = head_rows / 2, sum = 4 * small_model().hidden;
  EXPECT_EQ(growth(bf16{}, head_rows), more * (slice * 4 + chunk * 2 + sum));
  EXPECT_EQ(growth(fp16{}, head_rows), more * (slice * 4 + chunk * 2 + sum));
  EXPECT_EQ(growth(float{}, head_rows), more * chunk * 4);
  EXPECT_EQ(growth(bf16{}, 1), more * (4 + 2)) << "a single chunk";
}

TEST(HeadMemory, HasNoGradientsForForwardAlone) {
  const auto growth = [&]<class T>(T) {
    return workspace<T>(1, head_rows, 2 * more, Passes::forward) -
           workspace<T>(1, head_rows, more, Passes::forward);
  };
  const Index slice = chunk_of(more, head_rows, !tensor::on_host).slice;
  EXPECT_EQ(growth(bf16{}), more * slice * 4);
  EXPECT_EQ(growth(float{}), more * slice * 4);
}

TEST(HeadMemory, IsSharedWithTheBlocks) {
  EXPECT_EQ(workspace<bf16>(1, head_rows, 2), workspace<bf16>(1, head_rows, 1));
  EXPECT_EQ(workspace<float>(1, head_rows, 2), workspace<float>(1, head_rows, 1));
}

}  // namespace
}  // namespace kzero::tests
