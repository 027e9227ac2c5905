#include <functional>

#include "kernels/attention/device_tiles.hpp"
#include "kernels/device/tensor_core_product.hpp"
#include "unit/kernels/attention_cases.hpp"
#include "unit/kernels/tensor_cores/lanes.hpp"
#include "unit/kernels/tensor_cores/whole_fragments.hpp"

namespace kzero::kernels {

namespace {

/// A thread holds the fragments of a warp. If a warp has lanes, each lane holds all of them, and no
/// scores stay in registers.
struct WholeWarpArithmetic {
  static constexpr int warps = team_warps, lanes = 1;
  template <class T>
  requires(warp_lanes == 1) using Fragments = WholeFragments<T>;
  template <class T, int rows, int columns>
  using GemmProblem =
      TensorCoreProduct<WholeFragments<T>, T, rows, columns, team_warps, warp_lanes>;
};
using TensorCores = Tiled<WholeWarpArithmetic>;

/// Four warps of one thread each.
struct FourWarps {
  static constexpr int warps = 4, lanes = 1;
  template <class T>
  using Fragments = WholeFragments<T>;

  static void run(const std::function<void(int)>& part) { Fibers::run(warps, part); }
};

/// Four warps of 32 lanes each: the GPU code, with stand-ins for the instructions.
struct FourWarpsOfLanes {
  static constexpr int warps = 4, lanes = 32;
  template <class T>
  using Fragments = WarpFragments<T, LaneInstructions>;

  static void run(const std::function<void(int)>& part) { run_warps(warps, part); }
};

/// A thread of the teams that InTurns runs.
struct OwnThread {
  FiberTeam& team;
  int thread;
};

/// Runs the teams one after another, with garbage in their scratch memory.
template <class Arithmetic, class T>
struct InTurns {
  template <class Kernel>
  void operator()(const char*, Index teams, const Kernel& kernel) const {
    constexpr int bytes = Kernel::Blocks::bytes;
    const Guarded<float> scratch(bytes / 4);
    for (int rank = 0; rank < teams; ++rank) {
      FiberTeam team(Kernel::Blocks::threads);
      Arithmetic::run([&](int thread) {
        kernel.run(OwnThread{team, thread}, rank, reinterpret_cast<T*>(scratch.data()));
        EXPECT_TRUE(PendingCopies::is_none()) << "copies that nobody waited for";
      });
    }
  }
};

template <class Arithmetic, class T>
class AttentionInTurns : public AttentionBackend<T> {
 public:
  explicit AttentionInTurns(const AttentionProblem& problem)
      : shape_(problem.shape), scale_(problem.factor()) {}

  Index scratch_bytes(Index) const override {
    return shape_.batch * shape_.heads * shape_.sequence * 4;
  }
  void start(Vector<float> scratch) override { scratch_ = scratch; }
  void forward(const Execution&, const HeadOperands<const T>& in, const AttentionRows& rows,
               Matrix<T> out, Matrix<float> log_sum) const override {
    with_mask(rows, shape_.sequence, [&](const auto& mask) {
      warp_attention_forward<Arithmetic, T>(shape_, scale_, in, mask, {out.data(), shape_.width()},
                                            log_sum, InTurns<Arithmetic, T>());
    });
  }
  void backward(const Execution& exec, const HeadOperands<const T>& in, const AttentionRows& rows,
                Matrix<const T> out, Matrix<const float> log_sum, Matrix<const T> dout,
                const HeadOperands<T>& gradients) const override {
    const AttentionShape& s = shape_;
    const Matrix<float> delta(scratch_.data(), s.batch * s.heads, s.sequence);
    detail::sum_products<T>(exec, s, out, dout, delta);
    with_mask(rows, s.sequence, [&](const auto& mask) {
      warp_attention_backward<Arithmetic, T>(
          BackwardArrays<T, std::decay_t<decltype(mask)>>{s,
                                                          scale_,
                                                          in,
                                                          {dout.data(), s.width()},
                                                          log_sum,
                                                          Matrix<const float>(delta),
                                                          gradients,
                                                          mask},
          InTurns<Arithmetic, T>());
    });
  }

 private:
  AttentionShape shape_;
  float scale_;
  Vector<float> scratch_;
};

template <class Arithmetic>
struct InWarps : Tiled<Arithmetic> {
  template <class T>
  static std::unique_ptr<AttentionBackend<T>> make(const AttentionProblem& problem) {
    return std::make_unique<AttentionInTurns<Arithmetic, T>>(problem);
  }
};

// fp16 is left out: the stand-ins multiply both types as floats, and each takes half a minute to
// compile.
template <class T>
class TensorCoreAttention : public testing::Test {};
TYPED_TEST_SUITE(TensorCoreAttention, testing::Types<bf16>, );

TYPED_TEST(TensorCoreAttention, MatchesThePlainLoop) {
  for (const AttentionShape& shape : tiled_shapes()) check_attention<TensorCores, TypeParam>(shape);
}

// Blocks of 128 rows up to a width of 64, otherwise of 64 rows. Tiles of 64 and of 32 rows.
TYPED_TEST(TensorCoreAttention, WarpsMatchThePlainLoop) {
  for (const Index sequence : {1, 17, 33, 64, 65, 127, 129, 193})
    check_attention<InWarps<FourWarps>, TypeParam>(make_shape(1, sequence, 1, 24));
  for (const Index sequence : {2, 31, 64, 67, 131})
    check_attention<InWarps<FourWarps>, TypeParam>(make_shape(1, sequence, 1, 72));
  for (const Index head_width : {8, 16, 48, 64, 80, 96, 120, 128})
    check_attention<InWarps<FourWarps>, TypeParam>(make_shape(2, 37, 2, head_width));
}

TYPED_TEST(TensorCoreAttention, QueryHeadsShareKeysAndValuesInWarps) {
  check_attention<InWarps<FourWarps>, TypeParam>(make_shape(2, 67, 2, 16, 3));
  check_attention<InWarps<FourWarps>, TypeParam>(make_shape(1, 67, 1, 128, 5));
}

TYPED_TEST(TensorCoreAttention, StaysWithinDocuments) {
  for (const AttentionShape& shape : {make_shape(2, 130, 1, 20), make_shape(1, 65, 1, 136, 3)})
    check_documents<TensorCores, TypeParam>(shape);
  for (const Index sequence : {2, 65, 129, 193})
    check_documents<InWarps<FourWarps>, TypeParam>(make_shape(2, sequence, 1, 24));
  check_documents<InWarps<FourWarps>, TypeParam>(make_shape(2, 131, 1, 72, 2));
  check_documents<InWarps<FourWarpsOfLanes>, TypeParam>(make_shape(1, 131, 1, 24, 2));
}

TYPED_TEST(TensorCoreAttention, SkipsTilesOfOtherDocuments) {
  check_skipping<InWarps<FourWarps>, TypeParam>(24);
  check_skipping<InWarps<FourWarps>, TypeParam>(72);
}

TYPED_TEST(TensorCoreAttention, DropsWeights) {
  for (const AttentionShape& shape : {make_shape(2, 130, 1, 20), make_shape(1, 65, 1, 136, 3)})
    check_dropout<TensorCores, TypeParam>(shape);
  for (const Index sequence : {2, 65, 129, 193})
    check_dropout<InWarps<FourWarps>, TypeParam>(make_shape(2, sequence, 1, 24));
  check_dropout<InWarps<FourWarps>, TypeParam>(make_shape(2, 131, 1, 72, 2));
  check_dropout<InWarps<FourWarpsOfLanes>, TypeParam>(make_shape(1, 131, 1, 24, 2));
}

TYPED_TEST(TensorCoreAttention, MultipliesScoresByAnotherFactor) {
  check_scales<TensorCores, TypeParam>(make_shape(1, 65, 1, 136, 3));
  check_scales<InWarps<FourWarps>, TypeParam>(make_shape(2, 131, 1, 72, 2));
  check_scales<InWarps<FourWarpsOfLanes>, TypeParam>(make_shape(1, 131, 1, 24, 2));
}

TYPED_TEST(TensorCoreAttention, LanesMatchThePlainLoop) {
  check_attention<InWarps<FourWarpsOfLanes>, TypeParam>(make_shape(1, 43, 1, 24, 2));
  check_attention<InWarps<FourWarpsOfLanes>, TypeParam>(make_shape(1, 131, 1, 24));
  check_attention<InWarps<FourWarpsOfLanes>, TypeParam>(make_shape(1, 37, 1, 72));
}

}  // namespace

}  // namespace kzero::kernels
