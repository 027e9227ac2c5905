#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <map>

#include "base/error.hpp"
#include "runtime/cuda_stream.hpp"
#include "tensor/cublaslt_or_hipblaslt.hpp"
#include "tensor/gemm_backends.hpp"
#ifndef KZERO_HIP
#include "tensor/cublaslt_algorithms.hpp"
#endif

namespace kzero::tensor {

namespace {

// The library's matrices are column-major, and only column-major outputs have epilogues. A
// row-major matrix is its transpose in column-major order, so the call computes C^T = op(B)^T
// op(A)^T. Our B is the library's A, our columns are its rows, and its bias along rows is ours
// along columns.

/// The largest alignment that is distinguished. Arenas and units of parameters are aligned to no
/// more than this, and a value has the same distance from such a boundary in every ZeRO stage.
constexpr Index max_alignment = 64;

/// The library reads gelu_input in steps of this many columns.
constexpr Index gelu_columns = 8;

/// Kernels may access an epilogue's operands 16 bytes at a time. Preferences tell the heuristic the
/// alignments of matrices only, so it may choose such a kernel for any bias
/// (pytorch/pytorch#194497).
constexpr std::uintptr_t epilogue_alignment = 16;

Index alignment_of(const void* data) {
  const auto address = std::bit_cast<std::uintptr_t>(data);
  return std::min(max_alignment, Index{1} << std::min(std::countr_zero(address), 62));
}

bool fits_epilogue(const void* data) {
  return std::bit_cast<std::uintptr_t>(data) % epilogue_alignment == 0;
}

/// Returns an address that is aligned as little as an epilogue's operand may be. A heuristic that
/// looks at addresses then chooses the same algorithm for all of them.
const void* minimally_aligned(const void* data) {
  return std::bit_cast<const void*>(std::bit_cast<std::uintptr_t>(data) | epilogue_alignment);
}

cudaDataType_t type_of(Dtype type) {
  switch (type) {
    case Dtype::bf16:
      return CUDA_R_16BF;
    case Dtype::fp16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

/// The key of a plan: everything that decides the choice of an algorithm.
struct Key {
  Index m, n, k;
  Index a_stride, b_stride, c_stride;
  Transpose a_transpose, b_transpose;
  Dtype in, out;
  bool has_addend;
  std::uint32_t epilogue;
  Accumulate accumulate;
  Index a_alignment, b_alignment, c_alignment, addend_alignment;

  auto operator<=>(const Key&) const = default;
};

/// The matrix that the library calls C and adds with the factor beta.
const void* added_to(const GemmProblem& p) { return p.addend ? p.addend : p.c; }

/// The gradient of a bias is not fused: with CUBLASLT_EPILOGUE_DGELU_BGRAD the product takes 2.7 to
/// 2.9 times as long as with DGELU (cuBLASLt 13.1 on an H200), and a sum of rows a third of it.
std::uint32_t epilogue_of(const GemmProblem& p) {
  if (p.bias) return CUBLASLT_EPILOGUE_BIAS;
  return p.gelu_input ? CUBLASLT_EPILOGUE_DGELU : CUBLASLT_EPILOGUE_DEFAULT;
}

Key key_of(const GemmProblem& p) {
  return {p.m,
          p.n,
          p.k,
          p.a.stride,
          p.b.stride,
          p.c_stride,
          p.a.transpose,
          p.b.transpose,
          p.in,
          p.out,
          p.addend != nullptr,
          epilogue_of(p),
          p.accumulate,
          alignment_of(p.a.data),
          alignment_of(p.b.data),
          alignment_of(p.c),
          alignment_of(added_to(p))};
}

std::string text_of(const GemmProblem& p) {
  const auto operand = [](const Operand& x) {
    return fmt::format("{}stride {}", x.transpose == Transpose::yes ? "transposed, " : "",
                       x.stride);
  };
  return fmt::format("a GEMM of {} x {} x {} in {} to {} (A {}; B {}; C stride {}{}{}{}{})", p.m,
                     p.n, p.k, name_of(p.in), name_of(p.out), operand(p.a), operand(p.b),
                     p.c_stride, p.bias ? "; bias" : "", p.addend ? "; addend" : "",
                     p.gelu_input ? "; GELU's gradient" : "",
                     p.accumulate == Accumulate::yes ? "; accumulated" : "");
}

/// The name of a product in tables of algorithms: the same for equal keys only.
[[maybe_unused]] std::string table_name(const Key& key) {
  const auto letter = [](Transpose t) { return t == Transpose::yes ? 'T' : 'N'; };
  std::string name = fmt::format(
      "{} {} x {} x {} {}{} to {}, strides {} {} {}, aligned {} {} {} {}", name_of(key.in), key.m,
      key.n, key.k, letter(key.a_transpose), letter(key.b_transpose), name_of(key.out),
      key.a_stride, key.b_stride, key.c_stride, key.a_alignment, key.b_alignment, key.c_alignment,
      key.addend_alignment);
  if (key.epilogue == CUBLASLT_EPILOGUE_BIAS) name += ", bias";
  if (key.epilogue == CUBLASLT_EPILOGUE_DGELU) name += ", GELU's gradient";
  if (key.has_addend) name += ", addend";
  if (key.accumulate == Accumulate::yes) name += ", accumulated";
  return name;
}

void require(cublasStatus_t status, const char* call, const GemmProblem& p) {
  KZERO_REQUIRE(status == CUBLAS_STATUS_SUCCESS, ExitCode::other, "{} failed with {} for {}",
                runtime::name_here(call), blaslt::text_of(status), text_of(p));
}

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    destroy(object);
  }
};
using Handle = std::unique_ptr<cublasLtContext, Destroy<&cublasLtDestroy>>;
using Description =
    std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy<&cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy<&cublasLtMatrixLayoutDestroy>>;
using Preference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy<&cublasLtMatmulPreferenceDestroy>>;

template <class T>
void set(const Description& description, cublasLtMatmulDescAttributes_t name, T value,
         const GemmProblem& p) {
  require(cublasLtMatmulDescSetAttribute(description.get(), name, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute", p);
}

template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t name, T value,
         const GemmProblem& p) {
  require(cublasLtMatmulPreferenceSetAttribute(preference.get(), name, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute", p);
}

/// Sets the addresses of those epilogue operands that the GEMM has.
void set_operands(const Description& description, const void* bias, const void* gelu_input,
                  const GemmProblem& p) {
  if (p.bias) set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias, p);
  if (p.gelu_input) set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, gelu_input, p);
}

/// Sums and factors in fp32, without the shorter inputs of TF32.
Description make_description(const GemmProblem& p) {
  cublasLtMatmulDesc_t made = nullptr;
  require(cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate", p);
  Description description(made);
  const auto operation = [](Transpose t) -> std::int32_t {
    return t == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, operation(p.b.transpose), p);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, operation(p.a.transpose), p);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p), p);
  if (p.gelu_input) set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{p.n}, p);
  set_operands(description, minimally_aligned(p.bias), minimally_aligned(p.gelu_input), p);
  return description;
}

/// The layout of a row-major [rows,columns] matrix.
Layout make_layout(Dtype type, Index rows, Index columns, Index stride, const GemmProblem& p) {
  cublasLtMatrixLayout_t made = nullptr;
  require(cublasLtMatrixLayoutCreate(&made, type_of(type), static_cast<std::uint64_t>(columns),
                                     static_cast<std::uint64_t>(rows), stride),
          "cublasLtMatrixLayoutCreate", p);
  return Layout(made);
}

Layout make_layout(const Operand& x, Index rows, Index columns, const GemmProblem& p) {
  if (x.transpose == Transpose::yes) std::swap(rows, columns);
  return make_layout(p.in, rows, columns, x.stride, p);
}

Preference make_preference([[maybe_unused]] const Key& key, Index workspace, const GemmProblem& p) {
  cublasLtMatmulPreference_t made = nullptr;
  require(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate", p);
  Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace),
      p);
#ifndef KZERO_HIP  // hipBLASLt has no such preferences
  // A sum may be split if its parts are kept in fp32 and added by a later kernel. The other schemes
  // round the parts to C's type.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}, p);
  const auto promise = [&](cublasLtMatmulPreferenceAttributes_t name, Index alignment) {
    set(preference, name, static_cast<std::uint32_t>(alignment), p);
  };
  promise(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.b_alignment);
  promise(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.a_alignment);
  promise(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.addend_alignment);
  promise(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.c_alignment);
#endif
  return preference;
}

void require_possible(const GemmProblem& p) {
  const bool adds = p.bias || p.addend || p.accumulate == Accumulate::yes;
  KZERO_REQUIRE(p.in == p.out || (!p.bias && !p.addend && !p.gelu_input), ExitCode::other,
                "internal error: operands of two types besides A and B, in {}", text_of(p));
  KZERO_REQUIRE(!p.addend || p.accumulate == Accumulate::no, ExitCode::other,
                "internal error: two matrices to add, in {}", text_of(p));
  KZERO_REQUIRE(!p.gelu_input || !adds, ExitCode::other,
                "internal error: GELU's gradient of a sum, in {}", text_of(p));
  // With a transposed A in an odd stride a product ended with a misaligned address on an H200.
  KZERO_REQUIRE(!p.gelu_input || p.a.transpose == Transpose::no, ExitCode::other,
                "internal error: GELU's gradient with a transposed A, in {}", text_of(p));
}

Index bias_bytes(const GemmProblem& p) { return p.n * bytes_of(p.in); }

void copy_bias(const Execution& exec, const GemmProblem& p, const void* from, void* to) {
  const auto size = static_cast<std::size_t>(bias_bytes(p));
  Kokkos::deep_copy(exec, Vector<char>(static_cast<char*>(to), size),
                    Vector<const char>(static_cast<const char*>(from), size));
}

}  // namespace

struct CublasLtGemm::Plans {
  struct Plan {
    Description description;
    Layout a, b, c, addend;  // addend: none if the library's C and D are the same
    cublasLtMatmulAlgo_t algorithm{};

    cublasLtMatrixLayout_t added() const { return addend ? addend.get() : c.get(); }
  };

  Handle handle;
  std::map<Key, Plan> plans;
  std::byte* workspace = nullptr;
  Index workspace_size = 0;
  Index bias_size = 0;  // bytes after the workspace for a bias whose own address does not fit
#ifndef KZERO_HIP
  blaslt::Choice choice;
#endif

  /// Returns that place for the bias of this GEMM.
  std::byte* bias_place(const GemmProblem& p) const {
    KZERO_REQUIRE(bias_bytes(p) <= bias_size, ExitCode::other,
                  "internal error: {} bytes of workspace for a bias of {} bytes that is not "
                  "aligned, in {}",
                  bias_size, bias_bytes(p), text_of(p));
    return workspace + workspace_size;
  }

  const Plan& plan(const GemmProblem& p) {
    const Key key = key_of(p);
    const auto found = plans.find(key);
    return found != plans.end() ? found->second : plans.emplace(key, make(key, p)).first->second;
  }

  Plan make(const Key& key, const GemmProblem& p) {
    require_possible(p);
    KZERO_REQUIRE(!p.gelu_input || fuses(p.in, p.n), ExitCode::other,
                  "internal error: GELU's gradient is not fused, in {}", text_of(p));
    Plan plan{make_description(p),
              make_layout(p.a, p.m, p.k, p),
              make_layout(p.b, p.k, p.n, p),
              make_layout(p.out, p.m, p.n, p.c_stride, p),
              p.addend ? make_layout(p.in, p.m, p.n, p.n, p) : nullptr,
              {}};
#ifndef KZERO_HIP
    if (const auto chosen = choice.find(table_name(key), call_of(plan, key, p))) {
      plan.algorithm = *chosen;
      return plan;
    }
#endif
    const Preference preference = make_preference(key, workspace_size, p);
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle.get(), plan.description.get(), plan.b.get(), plan.a.get(), plan.added(),
        plan.c.get(), preference.get(), 1, &result, &count);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) require(status, "cublasLtMatmulAlgoGetHeuristic", p);
    KZERO_REQUIRE(
        status == CUBLAS_STATUS_SUCCESS && count == 1 && result.state == CUBLAS_STATUS_SUCCESS,
        ExitCode::other,
        "{} has no algorithm for {}; run.gemm = \"reference\" is slow but "
        "has one for everything",
        blaslt::name, text_of(p));
    plan.algorithm = result.algo;
    return plan;
  }

#ifndef KZERO_HIP
  /// The call without addresses. As in key_of(), the library's A is our B.
  blaslt::Call call_of(const Plan& plan, const Key& key, const GemmProblem& p) const {
    return {.handle = handle.get(),
            .description = plan.description.get(),
            .a_layout = plan.b.get(),
            .b_layout = plan.a.get(),
            .c_layout = plan.added(),
            .d_layout = plan.c.get(),
            .in = type_of(p.in),
            .added = type_of(p.addend ? p.in : p.out),
            .out = type_of(p.out),
            .a_alignment = key.b_alignment,
            .b_alignment = key.a_alignment,
            .c_alignment = key.addend_alignment,
            .d_alignment = key.c_alignment,
            .workspace_size = static_cast<std::size_t>(workspace_size)};
  }

  /// Compares algorithms on the operands of this call.
  void measure(const Execution& exec, const Plan& plan, const GemmProblem& p, float beta) {
    const Key key = key_of(p);
    blaslt::Call call = call_of(plan, key, p);
    call.a = p.b.data, call.b = p.a.data, call.c = added_to(p), call.d = p.c;
    call.beta = beta, call.workspace = workspace;
    choice.compare(exec, table_name(key), call, make_preference(key, workspace_size, p).get());
  }
#endif

  static bool fuses(Dtype type, Index n) { return type != Dtype::fp32 && n % gelu_columns == 0; }
};

CublasLtGemm::CublasLtGemm() : plans_(std::make_unique<Plans>()) {
  cublasLtHandle_t made = nullptr;
  const cublasStatus_t status = cublasLtCreate(&made);
  KZERO_REQUIRE(status == CUBLAS_STATUS_SUCCESS, ExitCode::other,
                "{} does not start: {} failed with {}", blaslt::name,
                runtime::name_here("cublasLtCreate"), blaslt::text_of(status));
  plans_->handle.reset(made);
#ifndef KZERO_HIP
  plans_->choice.set_library(arithmetic());
#endif
}

CublasLtGemm::~CublasLtGemm() = default;

std::string CublasLtGemm::arithmetic() const {
  std::string text = fmt::format("{} {}", blaslt::name, blaslt::version(plans_->handle.get()));
#ifndef KZERO_HIP
  text += plans_->choice.arithmetic();
#endif
  return text;
}

AlgorithmChoice* CublasLtGemm::algorithms() {
#ifdef KZERO_HIP
  return nullptr;
#else
  return &plans_->choice;
#endif
}

bool CublasLtGemm::fuses_gelu_gradient(Dtype type, Index n) const { return Plans::fuses(type, n); }

void CublasLtGemm::use_workspace(void* data, Index bytes) {
  const auto address = std::bit_cast<std::intptr_t>(data);
  plans_->workspace = std::bit_cast<std::byte*>(round_up(address, workspace_alignment));
  // The sizes do not depend on the address, since algorithms are chosen by the first.
  const Index all = std::max<Index>(bytes - workspace_alignment, 0);
  const Index size = std::min(all, scratch_bytes);
  if (size != plans_->workspace_size) plans_->plans.clear();
  plans_->workspace_size = size;
  plans_->bias_size = all - size;
}

void CublasLtGemm::run(const Execution& exec, const GemmProblem& product) {
  GemmProblem p = product;
  KZERO_REQUIRE(fits_epilogue(p.gelu_input), ExitCode::other,
                "internal error: GELU's input is not aligned to {} bytes, in {}",
                epilogue_alignment, text_of(p));
  if (!fits_epilogue(product.bias)) {
    std::byte* const place = plans_->bias_place(p);
    copy_bias(exec, p, product.bias, place);
    p.bias = place;
  }
  const Plans::Plan& plan = plans_->plan(p);
  set_operands(plan.description, p.bias, p.gelu_input, p);
  const float one = 1;
  const float beta = p.addend || p.accumulate == Accumulate::yes ? 1 : 0;
#ifndef KZERO_HIP
  if (plans_->choice.measures()) plans_->measure(exec, plan, p, beta);
#endif
  require(
      cublasLtMatmul(plans_->handle.get(), plan.description.get(), &one, p.b.data, plan.b.get(),
                     p.a.data, plan.a.get(), &beta, added_to(p), plan.added(), p.c, plan.c.get(),
                     &plan.algorithm, plans_->workspace,
                     static_cast<std::size_t>(plans_->workspace_size), runtime::stream_of(exec)),
      "cublasLtMatmul", p);
}

}  // namespace kzero::tensor
