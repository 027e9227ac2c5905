#include "doubles/cublaslt.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <vector>

#include "doubles/cublaslt_product.hpp"
#include "doubles/cuda_runtime.hpp"
#include "runtime/cuda_stream.hpp"

// A handle has nothing to keep.
struct cublasLtContext {
  int unused = 0;
};

namespace kzero::tests {

namespace {

/// Attributes as the bytes that were set.
class Attributes {
 public:
  void set(int name, const void* value, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(value);
    values_[name].assign(bytes, bytes + size);
  }

  template <class T>
  T get(int name, T otherwise) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return otherwise;
    EXPECT_EQ(found->second.size(), sizeof(T)) << "attribute " << name;
    T value = otherwise;
    std::memcpy(&value, found->second.data(), std::min(sizeof value, found->second.size()));
    return value;
  }

  bool operator==(const Attributes&) const = default;

 private:
  std::map<int, std::vector<unsigned char>> values_;
};

struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  Attributes attributes;

  cublasOperation_t operation(int name) const {
    return static_cast<cublasOperation_t>(
        attributes.get<std::int32_t>(name, static_cast<std::int32_t>(CUBLAS_OP_N)));
  }
  cublasOperation_t a() const { return operation(CUBLASLT_MATMUL_DESC_TRANSA); }
  cublasOperation_t b() const { return operation(CUBLASLT_MATMUL_DESC_TRANSB); }
  std::uint32_t epilogue() const {
    return attributes.get<std::uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  }
  EpilogueOperands operands() const {
    return {attributes.get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr),
            attributes.get<const void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nullptr)};
  }
  std::int64_t aux_stride() const {
    return attributes.get<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0);
  }
  /// The type of an operand of the epilogue: D's unless it is set.
  cudaDataType_t operand_type(int name, cudaDataType_t of_d) const {
    const auto set = attributes.get<std::int32_t>(name, -1);
    return set == -1 ? of_d : static_cast<cudaDataType_t>(set);
  }
};

struct Algorithm {
  std::optional<Shape> shape;  // none: made from attributes, and not checked yet
  AlgorithmRequest request;    // what it may rely on
  std::size_t workspace = 0;
  LibraryAlgorithm library{};
  std::array<cudaDataType_t, 4> types{};  // of A, B, C and D, if made from attributes
};

std::vector<Algorithm>& algorithms() {
  static std::vector<Algorithm> all;
  return all;
}

Algorithm& algorithm_of(const cublasLtMatmulAlgo_t& algorithm) {
  return algorithms().at(algorithm.data[0]);
}

cublasLtMatmulAlgo_t add(const Algorithm& algorithm) {
  cublasLtMatmulAlgo_t made{};
  made.data[0] = algorithms().size();
  algorithms().push_back(algorithm);
  return made;
}

bool accepts(const LibraryAlgorithm& algorithm, const AlgorithmRequest& request) {
  return std::min({request.alignment_a, request.alignment_b, request.alignment_c,
                   request.alignment_d}) >= algorithm.alignment;
}

std::size_t bytes_of(cublasLtMatmulAlgoConfigAttributes_t name) {
  return name < CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ? 4 : 2;
}

template <class Mine, class Theirs>
Mine& mine(Theirs* theirs) {
  return *reinterpret_cast<Mine*>(theirs);
}

template <class Mine, class Theirs, class... Values>
cublasStatus_t make(Theirs** theirs, Values... values) {
  *theirs = reinterpret_cast<Theirs*>(new Mine{values...});
  ++cublaslt().made, ++cublaslt().alive;
  return CUBLAS_STATUS_SUCCESS;
}

template <class Mine, class Theirs>
cublasStatus_t destroy(Theirs* theirs) {
  delete &mine<Mine>(theirs);
  --cublaslt().alive;
  return CUBLAS_STATUS_SUCCESS;
}

std::uint32_t alignment_of(const void* data) {
  const auto address = std::bit_cast<std::uintptr_t>(data);
  return address == 0 ? 0 : 1U << std::min(std::countr_zero(address), 20);
}

Shape shape_of(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  const auto& own = mine<Description>(description);
  return {own.a(),         own.b(),         own.epilogue(),  own.aux_stride(),
          mine<Layout>(a), mine<Layout>(b), mine<Layout>(c), mine<Layout>(d)};
}

/// The conditions on what an epilogue reads and writes besides.
void check_epilogue(const Description& description, const Shape& s) {
  if (s.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return;
  EXPECT_TRUE(adds_bias(s) || has_gelu_gradient(s)) << "epilogue " << s.epilogue;
  EXPECT_EQ(s.d.type, s.a.type) << "kzero's operands have the type of A";
  const EpilogueOperands operands = description.operands();
  if (adds_bias(s)) {
    EXPECT_NE(operands.bias, nullptr);
    EXPECT_EQ(description.operand_type(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, s.d.type), s.d.type);
  }
  if (has_gelu_gradient(s)) {
    EXPECT_NE(operands.aux, nullptr);
    EXPECT_EQ(description.operand_type(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, s.d.type),
              s.d.type);
    EXPECT_EQ(s.aux_stride % 8, 0);
    EXPECT_GE(s.aux_stride, static_cast<std::int64_t>(s.d.rows));
  }
}

/// The table of supported types and the conditions on layouts.
void check_shape(const Description& description, const Shape& s) {
  EXPECT_EQ(description.compute, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(description.scale, CUDA_R_32F);
  EXPECT_EQ(s.a.type, s.b.type);
  EXPECT_EQ(s.c.type, s.d.type);
  EXPECT_TRUE(s.d.type == s.a.type || s.d.type == CUDA_R_32F);
  for (const Layout& x : {s.a, s.b, s.c, s.d}) {
    EXPECT_GT(x.rows, 0U);
    EXPECT_GT(x.columns, 0U);
    EXPECT_GE(x.stride, static_cast<std::int64_t>(x.rows));
  }
  const bool a_plain = s.a_operation == CUBLAS_OP_N, b_plain = s.b_operation == CUBLAS_OP_N;
  EXPECT_EQ(a_plain ? s.a.rows : s.a.columns, s.d.rows);
  EXPECT_EQ(b_plain ? s.b.columns : s.b.rows, s.d.columns);
  EXPECT_EQ(a_plain ? s.a.columns : s.a.rows, b_plain ? s.b.rows : s.b.columns);
  EXPECT_EQ(s.c.rows, s.d.rows);
  EXPECT_EQ(s.c.columns, s.d.columns);
  check_epilogue(description, s);
}

/// The conditions for tensor cores at full speed that a matrix breaks. The extent is that along
/// which the matrix is stored: m or k of A, k or n of B, m of C and D. Products of fp32 use no
/// tensor cores, but load as many bytes at a time.
std::string broken_by(const char* name, const Layout& x, std::uint32_t alignment, bool is_fp32) {
  std::string broken;
  const auto expect = [&](const char* what, std::size_t bytes) {
    if (bytes % 16 != 0) broken += fmt::format("; {} of {}: {} bytes", what, name, bytes);
  };
  if (!is_fp32) expect("extent", x.rows * size_of(x.type));
  expect("leading dimension", static_cast<std::size_t>(x.stride) * size_of(x.type));
  expect("address", alignment);
  return broken;
}

/// Notes a product that breaks a condition: m x n x k of the library, and what.
void note_if_slow(const Shape& s, const AlgorithmRequest& request) {
  const bool is_fp32 = s.a.type == CUDA_R_32F;
  const std::string broken = broken_by("A", s.a, request.alignment_a, is_fp32) +
                             broken_by("B", s.b, request.alignment_b, is_fp32) +
                             broken_by("C", s.c, request.alignment_c, is_fp32) +
                             broken_by("D", s.d, request.alignment_d, is_fp32);
  if (broken.empty()) return;
  const std::uint64_t k = s.a_operation == CUBLAS_OP_N ? s.a.columns : s.a.rows;
  cublaslt().slow.insert(fmt::format("{} x {} x {}{}", s.d.rows, s.d.columns, k, broken));
}

AlgorithmRequest request_of(const Attributes& preference) {
  const auto alignment = [&](int name) { return preference.get<std::uint32_t>(name, 256); };
  return {preference.get<std::uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 0),
          preference.get<std::uint32_t>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                        CUBLASLT_REDUCTION_SCHEME_MASK),
          alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES),
          alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES),
          alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES),
          alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)};
}

void check_call(const Algorithm& algorithm, const Call& call, const EpilogueOperands& operands) {
  const Shape& s = *algorithm.shape;
  EXPECT_GE(alignment_of(call.a), algorithm.request.alignment_a);
  EXPECT_GE(alignment_of(call.b), algorithm.request.alignment_b);
  EXPECT_GE(alignment_of(call.c), algorithm.request.alignment_c);
  EXPECT_GE(alignment_of(call.d), algorithm.request.alignment_d);
  // No preference tells the heuristic their alignments, so any algorithm may access 16 bytes at a
  // time (pytorch/pytorch#194497).
  EXPECT_TRUE(!adds_bias(s) || alignment_of(operands.bias) >= 16);
  EXPECT_TRUE(!has_gelu_gradient(s) || alignment_of(operands.aux) >= 16);
  EXPECT_EQ(std::bit_cast<std::uintptr_t>(call.workspace) % 256, 0U);
  EXPECT_GE(call.workspace_size, algorithm.workspace);
  if (call.c == call.d) {
    EXPECT_EQ(s.c, s.d) << "in place, yet of two layouts";
  } else {
    EXPECT_FALSE(overlap(call.c, s.c, call.d, s.d));
  }
  EXPECT_FALSE(overlap(call.a, s.a, call.d, s.d));
  EXPECT_FALSE(overlap(call.b, s.b, call.d, s.d));
  if (has_gelu_gradient(s)) {
    EXPECT_FALSE(
        overlap(operands.aux, {s.d.type, s.d.rows, s.d.columns, s.aux_stride}, call.d, s.d));
  }
}

/// Whoever else uses the workspace will notice.
void spoil_ends(void* workspace, std::size_t size) {
  const std::size_t part = std::min<std::size_t>(size / 2, 4096);
  if (part == 0) return;
  std::memset(workspace, 0xA5, part);
  std::memset(static_cast<char*>(workspace) + size - part, 0xA5, part);
}

}  // namespace

CublasLtDouble& cublaslt() {
  static CublasLtDouble state;
  return state;
}

}  // namespace kzero::tests

using namespace kzero::tests;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  ++cublaslt().made, ++cublaslt().alive;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  --cublaslt().alive;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() { return 0; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED" : "another";
}

const char* cublasLtGetStatusString(cublasStatus_t /*status*/) { return "the double was told so"; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return make<Description>(made, compute, scale, Attributes());
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return destroy<Description>(description);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t size) {
  mine<Description>(description).attributes.set(name, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t stride) {
  return make<Layout>(made, type, rows, columns, stride);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy<Layout>(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return make<Attributes>(made);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<Attributes>(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t size) {
  mine<Attributes>(preference).set(name, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  EXPECT_NE(handle, nullptr);
  EXPECT_GE(requested, 1);
  ++cublaslt().heuristics;
  const auto& own = mine<Description>(description);
  const Shape shape = shape_of(description, a, b, c, d);
  check_shape(own, shape);
  cublaslt().request = request_of(mine<Attributes>(preference));
  *found = 0;
  if (!cublaslt().has_algorithms) return CUBLAS_STATUS_NOT_SUPPORTED;
  note_if_slow(shape, cublaslt().request);
  for (const LibraryAlgorithm& one : cublaslt().algorithms) {
    if (*found == requested || !accepts(one, cublaslt().request)) continue;
    cublasLtMatmulHeuristicResult_t& result = results[(*found)++];
    result = {};
    result.workspaceSize = one.workspace.value_or(cublaslt().request.workspace);
    result.algo = add({shape, cublaslt().request, result.workspaceSize, one});
  }
  return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute,
                                      cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
                                      cudaDataType_t c, cudaDataType_t d, int id,
                                      cublasLtMatmulAlgo_t* made) {
  EXPECT_NE(handle, nullptr);
  EXPECT_EQ(compute, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(scale, CUDA_R_32F);
  for (const LibraryAlgorithm& one : cublaslt().algorithms) {
    if (one.attributes[0] != static_cast<std::uint32_t>(id)) continue;
    const LibraryAlgorithm plain{.attributes = {one.attributes[0], 0, 1},
                                 .alignment = one.alignment};
    *made = add({.shape = {}, .request = {}, .library = plain, .types = {a, b, c, d}});
    return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t name,
                                                    const void* value, std::size_t size) {
  if (name == CUBLASLT_ALGO_CONFIG_ID || size != bytes_of(name)) return CUBLAS_STATUS_INVALID_VALUE;
  std::uint32_t number = 0;
  std::memcpy(&number, value, size);
  algorithm_of(*algorithm).library.attributes.at(name) = number;
  algorithm_of(*algorithm).shape.reset();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t name,
                                                    void* value, std::size_t size,
                                                    std::size_t* written) {
  if (size != bytes_of(name)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &algorithm_of(*algorithm).library.attributes.at(name), size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                 cublasLtMatmulAlgoCapAttributes_t name,
                                                 void* value, std::size_t size,
                                                 std::size_t* written) {
  EXPECT_GE(name, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES);
  EXPECT_LE(name, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES);
  if (size != sizeof(std::uint32_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &algorithm_of(*algorithm).library.alignment, size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  EXPECT_NE(handle, nullptr);
  const Shape shape = shape_of(description, a, b, c, d);
  check_shape(mine<Description>(description), shape);
  Algorithm& own = algorithm_of(*algorithm);
  if (own.types != std::array{shape.a.type, shape.b.type, shape.c.type, shape.d.type})
    return CUBLAS_STATUS_INVALID_VALUE;
  for (const LibraryAlgorithm& one : cublaslt().algorithms) {
    if (one.attributes != own.library.attributes) continue;
    own.library = one;
    own.shape = shape;
    own.workspace = result->workspaceSize = one.workspace.value_or(0);
    own.request.alignment_a = own.request.alignment_b = one.alignment;
    own.request.alignment_c = own.request.alignment_d = one.alignment;
    result->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_size, cudaStream_t stream) {
  EXPECT_NE(handle, nullptr);
  EXPECT_EQ(stream, kzero::runtime::stream_of({}));
  if (cublaslt().next_product_status) {
    const cublasStatus_t status = *cublaslt().next_product_status;
    cublaslt().next_product_status.reset();
    return status;
  }
  ++cublaslt().products;
  const Algorithm& chosen = algorithm_of(*algorithm);
  cublaslt().computed_with = chosen.library.attributes;
  kzero::doubles::pass_time(chosen.library.milliseconds);
  const Shape shape = shape_of(description, a_layout, b_layout, c_layout, d_layout);
  EXPECT_TRUE(shape == chosen.shape) << "an algorithm for another product, or not checked";
  const EpilogueOperands operands = mine<Description>(description).operands();
  const Call call{*static_cast<const float*>(alpha),
                  *static_cast<const float*>(beta),
                  a,
                  b,
                  c,
                  d,
                  workspace,
                  workspace_size};
  if (call.beta != 0) ++cublaslt().sums;
  check_call(chosen, call, operands);
  if (!cublaslt().computes) return CUBLAS_STATUS_SUCCESS;
  spoil_ends(workspace, chosen.workspace);
  multiply(shape, call, operands);
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
