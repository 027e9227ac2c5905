#include "tensor/cublaslt_algorithms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "runtime/cuda_stream.hpp"
#include "runtime/stream_timer.hpp"

namespace kzero::tensor::blaslt {

namespace {

constexpr int candidates = 16;
constexpr int rounds = 5;
constexpr double round_ms = 2;  // a product is repeated until a round takes about so long
constexpr int max_repeats = 50;
constexpr double min_gain = 0.01;  // less is noise, and not worth other bits than the heuristic's

/// Experts multiply other rows in each layer, which nobody has to wait for.
constexpr std::size_t max_measured = 128;

constexpr std::size_t id = 0;
static_assert(CUBLASLT_ALGO_CONFIG_ID == id && CUBLASLT_ALGO_CONFIG_TILE_ID == 1 &&
              CUBLASLT_ALGO_CONFIG_SPLITK_NUM == 2 && CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME == 3 &&
              CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING == 4 && CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION == 5 &&
              CUBLASLT_ALGO_CONFIG_STAGES_ID == 6 && CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID == 7 &&
              CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID == 8 &&
              CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE == 2);

/// Of an attribute. They are unsigned in this file; the library's signed ones are not negative.
std::size_t bytes_of_attribute(std::size_t at) {
  return at < CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ? sizeof(std::uint32_t) : sizeof(std::uint16_t);
}

std::optional<Algorithm> attributes_of(const cublasLtMatmulAlgo_t& algorithm) {
  Algorithm found{};
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::uint32_t value = 0;
    std::size_t written = 0;
    const auto status = cublasLtMatmulAlgoConfigGetAttribute(
        &algorithm, static_cast<cublasLtMatmulAlgoConfigAttributes_t>(i), &value,
        bytes_of_attribute(i), &written);
    if (status != CUBLAS_STATUS_SUCCESS || written != bytes_of_attribute(i)) return std::nullopt;
    found[i] = value;
    if (found[i] < algorithm_keys[i].low || found[i] > algorithm_keys[i].high) return std::nullopt;
  }
  return found;
}

/// Returns whether addresses of the call's alignments suffice, which no other check says.
bool is_aligned(const Call& call, const cublasLtMatmulAlgo_t& algorithm) {
  const std::pair<cublasLtMatmulAlgoCapAttributes_t, Index> promised[] = {
      {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, call.a_alignment},
      {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, call.b_alignment},
      {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, call.c_alignment},
      {CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, call.d_alignment}};
  return std::ranges::all_of(promised, [&](const auto& one) {
    std::uint32_t needed = 0;
    std::size_t written = 0;
    return cublasLtMatmulAlgoCapGetAttribute(&algorithm, one.first, &needed, sizeof needed,
                                             &written) == CUBLAS_STATUS_SUCCESS &&
           needed <= one.second;
  });
}

struct Candidate {
  cublasLtMatmulAlgo_t algorithm;
  std::optional<Algorithm> attributes;  // none: as the heuristic gave it
  double ms = std::numeric_limits<double>::infinity();
};

/// The heuristic's choice, and then those of its list that can be made from their attributes.
std::vector<Candidate> candidates_of(const Call& call, cublasLtMatmulPreference_t preference) {
  cublasLtMatmulHeuristicResult_t results[candidates] = {};  // nvcc 13.0 fails for a vector
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      call.handle, call.description, call.a_layout, call.b_layout, call.c_layout, call.d_layout,
      preference, candidates, results, &count);
  KZERO_REQUIRE(status == CUBLAS_STATUS_SUCCESS && count > 0, ExitCode::other,
                "cublasLtMatmulAlgoGetHeuristic failed with {} for a list of {}",
                cublasLtGetStatusName(status), candidates);
  std::vector<Candidate> found{{results[0].algo, {}}};
  for (const auto& result : std::span(results).first(static_cast<std::size_t>(count))) {
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    const auto attributes = attributes_of(result.algo);
    if (!attributes) continue;
    if (const auto again = restored(call, *attributes)) found.push_back({*again, attributes});
  }
  return found;
}

double ms_of(const runtime::Execution& exec, const Call& call, const Candidate& candidate,
             int repeats) {
  runtime::StreamTimer timer;
  timer.begin(exec);
  for (int i = 0; i < repeats; ++i) {
    if (multiply(exec, call, candidate.algorithm) != CUBLAS_STATUS_SUCCESS)
      return std::numeric_limits<double>::infinity();
  }
  timer.end(exec);
  exec.fence("kzero::tensor::candidate_done");
  return 1e3 * timer.take_seconds() / repeats;
}

}  // namespace

cublasStatus_t multiply(const runtime::Execution& exec, const Call& call,
                        const cublasLtMatmulAlgo_t& algorithm) {
  const float one = 1;
  return cublasLtMatmul(call.handle, call.description, &one, call.a, call.a_layout, call.b,
                        call.b_layout, &call.beta, call.c, call.c_layout, call.d, call.d_layout,
                        &algorithm, call.workspace, call.workspace_size, runtime::stream_of(exec));
}

std::optional<cublasLtMatmulAlgo_t> restored(const Call& call, const Algorithm& algorithm) {
  if (!adds_in_order(algorithm)) return std::nullopt;
  cublasLtMatmulAlgo_t made{};
  if (cublasLtMatmulAlgoInit(call.handle, CUBLAS_COMPUTE_32F, CUDA_R_32F, call.in, call.in,
                             call.added, call.out, static_cast<int>(algorithm[id]),
                             &made) != CUBLAS_STATUS_SUCCESS)
    return std::nullopt;
  for (std::size_t i = id + 1; i < algorithm.size(); ++i) {
    const auto value = static_cast<std::uint32_t>(algorithm[i]);
    if (cublasLtMatmulAlgoConfigSetAttribute(
            &made, static_cast<cublasLtMatmulAlgoConfigAttributes_t>(i), &value,
            bytes_of_attribute(i)) != CUBLAS_STATUS_SUCCESS)
      return std::nullopt;
  }
  cublasLtMatmulHeuristicResult_t result{};
  const bool is_accepted = cublasLtMatmulAlgoCheck(call.handle, call.description, call.a_layout,
                                                   call.b_layout, call.c_layout, call.d_layout,
                                                   &made, &result) == CUBLAS_STATUS_SUCCESS &&
                           result.state == CUBLAS_STATUS_SUCCESS &&
                           result.workspaceSize <= call.workspace_size;
  return is_accepted && is_aligned(call, made) ? std::optional(made) : std::nullopt;
}

Fastest fastest(const runtime::Execution& exec, const Call& call,
                cublasLtMatmulPreference_t preference) {
  std::vector<Candidate> all = candidates_of(call, preference);
  for (const Candidate& one : all) ms_of(exec, call, one, 1);  // loads the kernels
  const double once = ms_of(exec, call, all.front(), 1);
  KZERO_REQUIRE(std::isfinite(once), ExitCode::other, "cublasLtMatmul failed while it was timed");
  const auto repeats = static_cast<int>(
      std::clamp(std::ceil(round_ms / std::max(once, 1e-4)), 1.0, double{max_repeats}));
  for (int round = 0; round < rounds; ++round) {
    for (Candidate& one : all) one.ms = std::min(one.ms, ms_of(exec, call, one, repeats));
  }
  const Candidate& best = *std::ranges::min_element(all, {}, &Candidate::ms);
  const double heuristic_ms = all.front().ms;
  if (best.ms >= (1 - min_gain) * heuristic_ms) return {heuristic_ms, heuristic_ms};
  return {heuristic_ms, best.ms, best.attributes};
}

void Choice::use(const AlgorithmTable& table) {
  const std::string device = runtime::device_kind();
  KZERO_REQUIRE(table.device == device && table.library == library_, ExitCode::usage,
                "run.algorithms: was measured on {} with {}, but this is {} with {}; measure again "
                "with `kzero check DECK --algorithms FILE`",
                table.device, table.library, device, library_);
  table_ = table;
}

std::optional<cublasLtMatmulAlgo_t> Choice::find(const std::string& product, const Call& call) {
  if (!table_) return std::nullopt;
  ++used_.products;
  const auto found = table_->products.find(product);
  if (found == table_->products.end()) return std::nullopt;
  ++used_.from_table;
  const auto algorithm = restored(call, found->second.algorithm);
  KZERO_REQUIRE(algorithm.has_value(), ExitCode::usage,
                "run.algorithms: {} does not accept its algorithm for the product {}", library_,
                product);
  return algorithm;
}

void Choice::compare(const runtime::Execution& exec, const std::string& product, const Call& call,
                     cublasLtMatmulPreference_t preference) {
  if (measured_.size() == max_measured && !measured_.contains(product)) return;
  const auto [place, is_new] = measured_.try_emplace(product);
  if (is_new) place->second.fastest = fastest(exec, call, preference);
  ++place->second.calls;
}

MeasuredAlgorithms Choice::measured() const {
  MeasuredAlgorithms all{.table = {.device = runtime::device_kind(), .library = library_}};
  for (const auto& [product, one] : measured_) {
    const auto calls = static_cast<double>(one.calls);
    ++all.products;
    all.heuristic_ms += calls * one.fastest.heuristic_ms;
    all.ms += calls * one.fastest.ms;
    if (!one.fastest.algorithm) continue;
    all.table.products[product] = {*one.fastest.algorithm, one.calls, one.fastest.heuristic_ms,
                                   one.fastest.ms};
  }
  return all;
}

std::string Choice::arithmetic() const {
  return table_ ? " with algorithms " + format_checksum(table_->digest()) : "";
}

}  // namespace kzero::tensor::blaslt
