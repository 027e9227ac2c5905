// Attention on hosts with its products of pairs in tiles.
#include "kernels/attention/host.hpp"
#include "unit/kernels/attention_cases.hpp"
#include "unit/kernels/host_tiles/emulated_tiles.hpp"

namespace kzero::kernels {

namespace {

struct InTiles {
  template <class T>
  static Rounding rounding() {
    return stored_probabilities<T>();
  }
  template <class T>
  static Index scratch_elements(const AttentionShape& s, Index slots) {
    return host::attention_scratch_bytes<T>(s, slots) / 4;
  }
  template <class T>
  static void forward(const AttentionShape& s, Matrix<const T> qkv, Matrix<T> out,
                      Matrix<float> log_sum, Vector<float> scratch) {
    host::attention_forward<T>(Execution(), s, operands_in(qkv, s), out, log_sum, scratch,
                               emulated_products);
  }
  template <class T>
  static void backward(const AttentionShape& s, Matrix<const T> qkv, Matrix<const T> out,
                       Matrix<const float> log_sum, Matrix<const T> dout, Matrix<T> dqkv,
                       Vector<float> scratch) {
    host::attention_backward<T>(Execution(), s, operands_in(qkv, s), out, log_sum, dout,
                                operands_in(dqkv, s), scratch, emulated_products);
  }
};

TEST(HostTilesAttention, MatchesThePlainLoop) {
  for (const Index sequence : {1, 17, 64, 97, 130})
    for (const Index head_width : {1, 16, 33, 64})
      check_attention<InTiles, bf16>(make_shape(1, sequence, 2, head_width), 2);
  check_attention<InTiles, bf16>(make_shape(1, 65, 1, 129), 1);
  check_attention<InTiles, bf16>(make_shape(2, 97, 2, 6, 3), 4);
}

TEST(HostTilesAttention, LeavesNoTilesConfigured) {
  check_attention<InTiles, bf16>(make_shape(1, 33, 3, 16), 2);
  EXPECT_GT(EmulatedTiles::counts().products, 0);  // on this thread
  EXPECT_FALSE(EmulatedTiles::configured());
}

}  // namespace

}  // namespace kzero::kernels
