// The graphs that CudnnAttentionPlans builds and the calls that it makes, against the double.
#include "doubles/cudnn.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "doubles/cuda_runtime.hpp"
#include "unit/kernels/attention_library.hpp"

namespace kzero::kernels {

namespace {

using tests::cudnn;
using Dims = std::vector<std::int64_t>;

template <class T>
class CudnnAttention : public testing::Test {
 protected:
  CudnnAttention() { cudnn() = {}; }
  ~CudnnAttention() override {
    EXPECT_EQ(cudnn().handles, 0) << "handles left over";
    cudnn() = {};
  }
};
using Elements = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(CudnnAttention, Elements, );

std::vector<AttentionShape> shapes() {
  std::vector<AttentionShape> all;
  for (const Index sequence : {2, 17, 64, 65, 130}) all.push_back(make_shape(2, sequence, 2, 24));
  for (const Index head_width : {8, 64, 136, 256}) all.push_back(make_shape(1, 33, 2, head_width));
  all.push_back(make_shape(3, 35, 2, 16, 3));
  all.push_back(make_shape(1, 33, 1, 136, 4));
  return all;
}

TYPED_TEST(CudnnAttention, MatchesThePlainLoop) {
  for (const AttentionShape& s : shapes()) check_attention<Library<Calls::one>, TypeParam>(s);
}

TYPED_TEST(CudnnAttention, MatchesThePlainLoopInCallsOfSequencesAndOfHeads) {
  for (const AttentionShape& s : {make_shape(3, 35, 2, 16, 3), make_shape(2, 17, 3, 24)}) {
    cudnn() = {};
    check_backward<Library<Calls::of_sequences>, TypeParam>(s);
    EXPECT_EQ(cudnn().graphs.back()->calls, s.batch);
    check_backward<Library<Calls::of_heads>, TypeParam>(s);
    EXPECT_EQ(cudnn().graphs.back()->calls, s.batch * s.kv_heads);
  }
}

TYPED_TEST(CudnnAttention, StoresNoScoresWhereTheyDoNotFit) {
  const AttentionShape s = make_shape(3, 35, 2, 16, 3);
  check_backward<Library<Calls::without_scores>, TypeParam>(s);
  EXPECT_FALSE(cudnn().graphs.back()->stores_scores);
  check_backward<Library<Calls::of_heads>, TypeParam>(s);
  EXPECT_TRUE(cudnn().graphs.back()->stores_scores);
}

// B 3, T 35, K 2, H 6, d 16: rows of q, k, v are 160 wide, those of out 96.
TYPED_TEST(CudnnAttention, DescribesTheHeadsAsTheyLie) {
  const AttentionShape s = make_shape(3, 35, 2, 16, 3);
  AttentionProblem p = problem_of<TypeParam>(s);
  p.q_stride = p.k_stride = 128;  // as behind norms of q and k
  const auto library = make_library<TypeParam>(cut(p, Calls::of_heads));
  library->start({});
  EXPECT_EQ(library->name(), "cuDNN 9.27.0");
  ASSERT_EQ(cudnn().graphs.size(), 2U);
  const auto expect = [](const tests::RecordedGraph& graph, const std::string& name,
                         const Dims& dims, const Dims& strides) {
    const auto& tensor = graph.tensors.at(name);
    EXPECT_EQ(tensor.dim, dims) << name;
    EXPECT_EQ(tensor.stride, strides) << name;
  };
  const tests::RecordedGraph& forward = *cudnn().graphs[0];
  EXPECT_FALSE(forward.is_backward);
  EXPECT_TRUE(forward.is_causal);
  EXPECT_EQ(forward.scale, 0.25F);
  expect(forward, "q", {3, 6, 35, 16}, {35 * 128, 16, 128, 1});
  expect(forward, "k", {3, 2, 35, 16}, {35 * 128, 16, 128, 1});
  expect(forward, "v", {3, 2, 35, 16}, {35 * 160, 16, 160, 1});
  expect(forward, "out", {3, 6, 35, 16}, {35 * 96, 16, 96, 1});
  expect(forward, "log_sum", {3, 6, 35, 1}, {6 * 35, 35, 1, 1});
  const tests::RecordedGraph& backward = *cudnn().graphs[1];
  EXPECT_TRUE(backward.is_backward && backward.is_causal && backward.is_deterministic);
  EXPECT_EQ(backward.scale, 0.25F);
  for (const char* name : {"q", "dq"})
    expect(backward, name, {1, 3, 35, 16},
           {35 * (name[0] == 'q' ? 128 : 160), 16, name[0] == 'q' ? 128 : 160, 1});
  for (const char* name : {"v", "dk", "dv"})
    expect(backward, name, {1, 1, 35, 16}, {35 * 160, 16, 160, 1});
  for (const char* name : {"out", "dout"})
    expect(backward, name, {1, 3, 35, 16}, {35 * 96, 16, 96, 1});
  expect(backward, "log_sum", {1, 3, 35, 1}, {3 * 35, 35, 1, 1});
}

TYPED_TEST(CudnnAttention, ReadsQueriesAndKeysFromAMatrixOfTheirOwn) {
  using T = TypeParam;
  const AttentionShape s = make_shape(2, 9, 2, 16, 3);
  const Index rows = s.batch * s.sequence, width = s.qkv_width(), of_v = s.kv_heads * s.head_width;
  const Index of_qk = width - of_v;
  const std::vector<T> all = numbers<T>(rows * width, 1, 2);
  std::vector<T> qk(rows * of_qk), rest = numbers<T>(rows * width, 7);
  for (Index row = 0; row < rows; ++row) {
    std::copy_n(&all[row * width], of_qk, &qk[row * of_qk]);
    std::copy_n(&all[row * width + of_qk], of_v, &rest[row * width + of_qk]);
  }
  const Guarded<T> together(all), apart(qk), values(rest);
  const AttentionProblem one = problem_of<T>(s);
  AttentionProblem two = one;
  two.q_stride = two.k_stride = of_qk;
  const T* v = together.data();
  const auto expected = run_library(one, v, v + s.width(), v + of_qk);
  for (const Calls calls : {Calls::one, Calls::of_sequences, Calls::of_heads}) {
    const T* q = apart.data();
    EXPECT_EQ(run_library(cut(two, calls), q, q + s.width(), values.data() + of_qk), expected);
  }
}

TYPED_TEST(CudnnAttention, IsTheDefaultAndTakesWhatIsPlanned) {
  const AttentionShape s = make_shape(2, 33, 2, 16);
  const ChosenBackend<TypeParam> chosen(s, AttentionKind::automatic);
  memory::Arenas expected;
  expected.take<float>(memory::Category::workspace,
                       AttentionCalls(chosen.problem).scratch_bytes() / 4);
  EXPECT_EQ(chosen.measured.bytes(), expected.bytes());
  EXPECT_EQ(chosen.arenas.bytes(), expected.bytes());
  EXPECT_EQ(chosen.attention.arithmetic, "attention by cuDNN 9.27.0");
  EXPECT_EQ(chosen.attention.refusal, "");
  static_cast<void>(chosen.out());
  EXPECT_EQ(cudnn().graphs.at(0)->calls, 1);
}

TYPED_TEST(CudnnAttention, GivesWayToOwnKernelsAndSaysWhy) {
  const AttentionShape s = make_shape(2, 33, 2, 16);
  const ChosenBackend<TypeParam> own(s, AttentionKind::kzero);
  EXPECT_EQ(own.attention.arithmetic, "attention by kzero's kernels");
  EXPECT_EQ(own.attention.refusal, "");
  EXPECT_TRUE(cudnn().graphs.empty());
  cudnn().unsupported = "not on this device";
  const ChosenBackend<TypeParam> fallen(s, AttentionKind::automatic);
  EXPECT_EQ(fallen.attention.arithmetic, own.attention.arithmetic);
  EXPECT_EQ(fallen.attention.refusal, "cuDNN: not on this device");
  EXPECT_TRUE(tests::same_bits(fallen.out(), own.out()));
  EXPECT_EQ(fallen.measured.bytes(), fallen.arenas.bytes());
  cudnn() = {};
  cudnn().more_workspace = Index{1} << 20;
  const ChosenBackend<TypeParam> large(s, AttentionKind::automatic);
  EXPECT_EQ(large.attention.refusal, "cuDNN: No execution plans support the graph.");
}

// The frontend throws some of what it finds as a plain std::runtime_error.
TYPED_TEST(CudnnAttention, GivesWayWhereTheLibraryDoesNotStart) {
  const AttentionShape s = make_shape(2, 33, 2, 16);
  cudnn().breaks_start = true;
  const ChosenBackend<TypeParam> without(s, AttentionKind::automatic);
  EXPECT_EQ(without.attention.refusal, "cudnnCreate failed: CUDNN_STATUS_NOT_INITIALIZED");
  cudnn() = {};
  cudnn().thrown = "No suitable implementation";
  const ChosenBackend<TypeParam> unsuited(s, AttentionKind::automatic);
  EXPECT_EQ(unsuited.attention.refusal, "cuDNN: No suitable implementation");
}

template <class T>
std::string failure_of(const AttentionShape& s) {
  try {
    static_cast<void>(ChosenBackend<T>(s, AttentionKind::cudnn));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "none";
}

/// "auto" leaves the problem to kzero's kernels for this reason, and "cudnn" is refused for it.
template <class T>
void expect_left_to_own_kernels(const AttentionProblem& problem, const std::string& reason) {
  memory::Arenas measured;
  const auto chosen = choose_attention<T>(measured, problem, AttentionKind::automatic, 1);
  EXPECT_EQ(chosen.refusal, reason);
  memory::Arenas again;
  try {
    static_cast<void>(choose_attention<T>(again, problem, AttentionKind::cudnn, 1));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.what(),
              "run.attention = \"cudnn\": " + reason + "; \"auto\" takes kzero's kernels then");
  }
}

TYPED_TEST(CudnnAttention, LeavesDocumentsToOwnKernels) {
  AttentionProblem problem = problem_of<TypeParam>(make_shape(1, 8, 2, 16));
  problem.documents = true;
  expect_left_to_own_kernels<TypeParam>(problem,
                                        "cuDNN's attention is for sequences of one document");
}

TYPED_TEST(CudnnAttention, LeavesDropoutToOwnKernels) {
  AttentionProblem problem = problem_of<TypeParam>(make_shape(1, 8, 2, 16));
  problem.dropout = true;
  expect_left_to_own_kernels<TypeParam>(problem,
                                        "cuDNN's attention has other dropout masks than kzero's");
}

TYPED_TEST(CudnnAttention, IsAnErrorWhereItIsDemandedAndCannot) {
  using T = TypeParam;
  const auto expect = [](const std::string& failure, const std::string& text) {
    EXPECT_NE(failure.find("run.attention = \"cudnn\": cuDNN"), std::string::npos) << failure;
    EXPECT_NE(failure.find(text), std::string::npos) << failure;
  };
  EXPECT_EQ(failure_of<T>(make_shape(1, 8, 2, 16)), "none");
  expect(failure_of<T>(make_shape(1, 8, 2, 12)), "a multiple of 8, not 12");
  expect(failure_of<T>(make_shape(1, 8, 2, 264)), "up to 256 wide");
  expect(failure_of<T>(make_shape(1, 1, 2, 16)), "two tokens");
  expect(failure_of<T>(make_shape(1, 4194304, 1, 64)), "at 4194304 tokens");
  expect(failure_of<float>(make_shape(1, 8, 2, 16)), "16 bits");
  cudnn().unsupported = "not on this device";
  expect(failure_of<T>(make_shape(1, 8, 2, 16)), "not on this device");
}

TYPED_TEST(CudnnAttention, NamesWhatFailed) {
  const ChosenBackend<TypeParam> chosen(make_shape(1, 8, 2, 16), AttentionKind::automatic);
  cudnn().breaks_execution = true;
  try {
    static_cast<void>(chosen.out());
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cuDNN: CUDNN_STATUS_EXECUTION_FAILED");
  }
}

}  // namespace

}  // namespace kzero::kernels
