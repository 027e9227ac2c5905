// Host attention with products of pairs in tiles.
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
  static std::unique_ptr<AttentionBackend<T>> make(const AttentionProblem& problem) {
    return std::make_unique<host::Attention<T>>(problem, emulated_products);
  }
};

TEST(HostTilesAttention, MatchesThePlainLoop) {
  for (const Index sequence : {1, 17, 64, 97, 130})
    for (const Index head_width : {1, 16, 33, 64})
      check_attention<InTiles, bf16>(make_shape(1, sequence, 2, head_width), 2);
  check_attention<InTiles, bf16>(make_shape(1, 65, 1, 129), 1);
  check_attention<InTiles, bf16>(make_shape(2, 97, 2, 6, 3), 4);
}

TEST(HostTilesAttention, StaysWithinDocuments) {
  for (const Index sequence : {17, 97, 130})
    check_documents<InTiles, bf16>(make_shape(2, sequence, 2, 16), 2);
  check_skipping<InTiles, bf16>(16);
}

TEST(HostTilesAttention, LeavesNoTilesConfigured) {
  check_attention<InTiles, bf16>(make_shape(1, 33, 3, 16), 2);
  EXPECT_GT(EmulatedTiles::counts().products, 0);  // on this thread
  EXPECT_FALSE(EmulatedTiles::configured());
}

}  // namespace

}  // namespace kzero::kernels
