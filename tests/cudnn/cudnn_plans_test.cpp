// cuDNN's own answers to kzero's graphs, for devices that are not there.
#include <cudnn_version.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "cudnn/devices.hpp"
#include "deck/reader.hpp"
#include "model/shape.hpp"
#include "unit/kernels/cudnn_requests.hpp"

namespace kzero::kernels {

namespace {

constexpr int capabilities[] = {80, 90, 100};
constexpr bool can_add_in_order = CUDNN_VERSION >= 92500;  // without the scores' gradients

/// cuDNN's reason if it has no plans for the problem, or an empty text.
std::string refusal(const AttentionProblem& problem, int capability, Index scratch_bytes,
                    bool compile = false) {
  try {
    CudnnAttentionPlans::check(problem, tests::device(capability), scratch_bytes, compile);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string name_of(const AttentionProblem& p) {
  const AttentionShape& s = p.shape;
  return fmt::format("B {} T {} H {} K {} d {}", s.batch, s.sequence, s.heads, s.kv_heads,
                     s.head_width);
}

/// The attention of a deck's micro-batch, as Context::attention_problem has it.
AttentionProblem problem_of(const deck::Config& deck) {
  const model::TransformerShape shape(deck.model, {0, deck.grid.tensor}, deck.lora);
  const Index batch = deck.train.micro_batch > 0 ? deck.train.micro_batch : deck.train.global_batch;
  AttentionProblem p =
      problem(batch, shape.sequence, shape.own.heads, shape.own.kv_heads, shape.head_dim);
  if (deck.train.precision == Dtype::fp16) p.type = Dtype::fp16;
  if (shape.norms_heads()) p.q_stride = p.k_stride = shape.own.width + shape.own.kv_width;
  return p;
}

/// The problems of all decks in input/, each with the decks that have it.
std::map<std::string, std::pair<AttentionProblem, std::string>> problems_of_decks() {
  std::map<std::string, std::pair<AttentionProblem, std::string>> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KZERO_INPUT)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".toml" || path.parent_path().filename() == "rates") continue;
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const AttentionProblem problem = problem_of(deck::read({path.string(), text.str()}, {}));
    auto& known = all.try_emplace(name_of(problem), problem, "").first->second;
    known.second += path.filename().string() + " ";
  }
  return all;
}

TEST(CudnnPlans, ExistForTheDecksInThePlannedScratch) {
  const auto decks = problems_of_decks();
  EXPECT_GE(decks.size(), 20U);
  for (const auto& [name, known] : decks) {
    const auto& [problem, files] = known;
    const Index width = problem.shape.head_width;
    for (const int capability : capabilities) {
      if (width > 128 && capability != 90)
        continue;  // which of these it has depends on its version
      const std::string reason = refusal(problem, capability, AttentionCalls(problem).plan_bytes);
      EXPECT_EQ(reason.empty(), width % 8 == 0)
          << name << " on sm_" << capability << " (" << files << "): " << reason;
    }
  }
}

// run.deterministic = false. Wider heads have plans without a fixed order on Hopper alone.
TEST(CudnnPlans, ExistWithoutAFixedOrderInThePlannedScratch) {
  for (const Requested& r : cudnn_requests) {
    AttentionProblem any_order = r.problem;
    any_order.fixed_order = false;
    const Index bytes = AttentionCalls(any_order).plan_bytes;
    const std::pair<int, Index> all[] = {{80, r.ampere}, {90, r.hopper}, {100, r.blackwell}};
    for (const auto& [capability, with_order] : all) {
      if (with_order == 0 || (any_order.shape.head_width > 128 && capability != 90)) continue;
      EXPECT_EQ(refusal(any_order, capability, bytes), "")
          << name_of(any_order) << " on sm_" << capability;
    }
  }
}

TEST(CudnnPlans, RequestWhatIsOnRecord) {
  if (CudnnAttentionPlans::name() != "cuDNN 9.27.0")
    GTEST_SKIP() << "on record is what 9.27.0 requests, this is " << CudnnAttentionPlans::name();
  for (const Requested& r : cudnn_requests) {
    const std::pair<int, Index> all[] = {{80, r.ampere}, {90, r.hopper}, {100, r.blackwell}};
    for (const auto& [capability, bytes] : all) {
      const std::string name = fmt::format("{} on sm_{}", name_of(r.problem), capability);
      if (bytes == 0) {
        EXPECT_NE(refusal(r.problem, capability, Index{1} << 40), "") << name;
      } else {
        EXPECT_EQ(refusal(r.problem, capability, bytes), "") << name;
        EXPECT_NE(refusal(r.problem, capability, bytes - 1), "") << name;
      }
    }
  }
}

// Compiling ends with the driver, and the stand-in for it accepts every kernel.
TEST(CudnnPlans, Compile) {
  const AttentionProblem grouped = problem(1, 1024, 8, 2, 64);
  AttentionProblem without_scores = grouped;
  without_scores.max_scratch = Index{8} << 20;
  ASSERT_FALSE(AttentionCalls(without_scores).stores_scores);
  for (const int capability : capabilities)
    EXPECT_EQ(refusal(grouped, capability, AttentionCalls(grouped).plan_bytes, true), "");
  const AttentionProblem odd = problem(3, 1023, 9, 3, 64);  // its log-sums are aligned to 4 bytes
  EXPECT_EQ(refusal(odd, 90, AttentionCalls(odd).plan_bytes, true), "");
  const Index bytes = AttentionCalls(without_scores).plan_bytes;
  EXPECT_EQ(refusal(without_scores, 90, bytes, true).empty(), can_add_in_order);
  EXPECT_NE(refusal(without_scores, 80, bytes), "");
}

}  // namespace

}  // namespace kzero::kernels
