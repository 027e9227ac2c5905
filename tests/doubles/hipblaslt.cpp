// A stand-in for hipBLASLt on host memory. It translates names and numbers, and calls the stand-in
// for cuBLASLt.
#include <gtest/gtest.h>
#include <hipblaslt/hipblaslt.h>

#include <cstring>

#include "doubles/cublaslt.hpp"

namespace {

hipblasStatus_t status_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return HIPBLAS_STATUS_SUCCESS;
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return HIPBLAS_STATUS_EXECUTION_FAILED;
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return HIPBLAS_STATUS_NOT_SUPPORTED;
    default:
      ADD_FAILURE() << "status " << status;
      return HIPBLAS_STATUS_UNKNOWN;
  }
}

cudaDataType_t type_of(hipDataType type) {
  switch (type) {
    case HIP_R_32F:
      return CUDA_R_32F;
    case HIP_R_16F:
      return CUDA_R_16F;
    case HIP_R_16BF:
      return CUDA_R_16BF;
  }
  ADD_FAILURE() << "data type " << type;
  return CUDA_R_64F;
}

std::int32_t operation_of(std::int32_t operation) {
  EXPECT_TRUE(operation == HIPBLAS_OP_N || operation == HIPBLAS_OP_T) << operation;
  return operation == HIPBLAS_OP_T ? CUBLAS_OP_T : CUBLAS_OP_N;
}

std::uint32_t epilogue_of(std::uint32_t epilogue) {
  switch (epilogue) {
    case HIPBLASLT_EPILOGUE_DEFAULT:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case HIPBLASLT_EPILOGUE_BIAS:
      return CUBLASLT_EPILOGUE_BIAS;
    case HIPBLASLT_EPILOGUE_DGELU:
      return CUBLASLT_EPILOGUE_DGELU;
    default:
      ADD_FAILURE() << "epilogue " << epilogue;
      return CUBLASLT_EPILOGUE_RELU;
  }
}

auto* handle_of(hipblasLtHandle_t handle) { return static_cast<cublasLtHandle_t>(handle); }
auto* theirs(hipblasLtMatmulDesc_t description) {
  return reinterpret_cast<cublasLtMatmulDesc_t>(description);
}
auto* theirs(hipblasLtMatrixLayout_t layout) {
  return reinterpret_cast<cublasLtMatrixLayout_t>(layout);
}
auto* theirs(hipblasLtMatmulPreference_t preference) {
  return reinterpret_cast<cublasLtMatmulPreference_t>(preference);
}

/// Makes an object of the other library.
template <class Theirs, class Ours, class Create>
hipblasStatus_t make(Ours* ours, const Create& create) {
  Theirs made = nullptr;
  const cublasStatus_t status = create(&made);
  *ours = reinterpret_cast<Ours>(made);
  return status_of(status);
}

/// Sets an attribute whose value the libraries number differently.
template <class T, class Translate>
hipblasStatus_t set(hipblasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name,
                    const void* value, std::size_t size, const Translate& translate) {
  T own{};
  EXPECT_EQ(size, sizeof own);
  std::memcpy(&own, value, sizeof own);
  const T translated = translate(own);
  return status_of(
      cublasLtMatmulDescSetAttribute(theirs(description), name, &translated, sizeof translated));
}

}  // namespace

extern "C" {

hipblasStatus_t hipblasLtCreate(hipblasLtHandle_t* handle) {
  return make<cublasLtHandle_t>(handle, cublasLtCreate);
}

hipblasStatus_t hipblasLtDestroy(hipblasLtHandle_t handle) {
  return status_of(cublasLtDestroy(handle_of(handle)));
}

hipblasStatus_t hipblasLtGetVersion(hipblasLtHandle_t handle, int* version) {
  EXPECT_NE(handle, nullptr);
  *version = 1200;
  return HIPBLAS_STATUS_SUCCESS;
}

hipblasStatus_t hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t* made, hipblasComputeType_t compute,
                                          hipDataType scale) {
  EXPECT_EQ(compute, HIPBLAS_COMPUTE_32F);
  return make<cublasLtMatmulDesc_t>(made, [&](auto* theirs) {
    return cublasLtMatmulDescCreate(theirs, CUBLAS_COMPUTE_32F, type_of(scale));
  });
}

hipblasStatus_t hipblasLtMatmulDescDestroy(hipblasLtMatmulDesc_t description) {
  return status_of(cublasLtMatmulDescDestroy(theirs(description)));
}

hipblasStatus_t hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t description,
                                                hipblasLtMatmulDescAttributes_t name,
                                                const void* value, std::size_t size) {
  const auto as_is = [&](cublasLtMatmulDescAttributes_t their_name) {
    return status_of(cublasLtMatmulDescSetAttribute(theirs(description), their_name, value, size));
  };
  switch (name) {
    case HIPBLASLT_MATMUL_DESC_TRANSA:
      return set<std::int32_t>(description, CUBLASLT_MATMUL_DESC_TRANSA, value, size, operation_of);
    case HIPBLASLT_MATMUL_DESC_TRANSB:
      return set<std::int32_t>(description, CUBLASLT_MATMUL_DESC_TRANSB, value, size, operation_of);
    case HIPBLASLT_MATMUL_DESC_EPILOGUE:
      return set<std::uint32_t>(description, CUBLASLT_MATMUL_DESC_EPILOGUE, value, size,
                                epilogue_of);
    case HIPBLASLT_MATMUL_DESC_BIAS_POINTER:
      return as_is(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
    case HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return as_is(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
    case HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return as_is(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
  }
  ADD_FAILURE() << "attribute " << name;
  return HIPBLAS_STATUS_UNKNOWN;
}

hipblasStatus_t hipblasLtMatrixLayoutCreate(hipblasLtMatrixLayout_t* made, hipDataType type,
                                            std::uint64_t rows, std::uint64_t columns,
                                            std::int64_t stride) {
  return make<cublasLtMatrixLayout_t>(made, [&](auto* theirs) {
    return cublasLtMatrixLayoutCreate(theirs, type_of(type), rows, columns, stride);
  });
}

hipblasStatus_t hipblasLtMatrixLayoutDestroy(hipblasLtMatrixLayout_t layout) {
  return status_of(cublasLtMatrixLayoutDestroy(theirs(layout)));
}

hipblasStatus_t hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t* made) {
  return make<cublasLtMatmulPreference_t>(made, cublasLtMatmulPreferenceCreate);
}

hipblasStatus_t hipblasLtMatmulPreferenceDestroy(hipblasLtMatmulPreference_t preference) {
  return status_of(cublasLtMatmulPreferenceDestroy(theirs(preference)));
}

// The library has no preferences for alignments. Kernels then need none beyond that of an element.
hipblasStatus_t hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t preference,
                                                      hipblasLtMatmulPreferenceAttributes_t name,
                                                      const void* value, std::size_t size) {
  EXPECT_EQ(name, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  const std::uint32_t alignment = 2;
  for (const auto any :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    cublasLtMatmulPreferenceSetAttribute(theirs(preference), any, &alignment, sizeof alignment);
  return status_of(cublasLtMatmulPreferenceSetAttribute(
      theirs(preference), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, value, size));
}

hipblasStatus_t hipblasLtMatmulAlgoGetHeuristic(
    hipblasLtHandle_t handle, hipblasLtMatmulDesc_t description, hipblasLtMatrixLayout_t a,
    hipblasLtMatrixLayout_t b, hipblasLtMatrixLayout_t c, hipblasLtMatrixLayout_t d,
    hipblasLtMatmulPreference_t preference, int requested,
    hipblasLtMatmulHeuristicResult_t results[], int* found) {
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_of(handle), theirs(description), theirs(a), theirs(b), theirs(c), theirs(d),
      theirs(preference), requested, &result, found);
  if (*found > 0) {
    std::memcpy(results[0].algo.data, result.algo.data, sizeof result.algo.data[0]);
    results[0].algo.max_workspace_bytes = results[0].workspaceSize = result.workspaceSize;
    results[0].state = status_of(result.state);
  }
  return status_of(status);
}

hipblasStatus_t hipblasLtMatmul(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t description,
                                const void* alpha, const void* a, hipblasLtMatrixLayout_t a_layout,
                                const void* b, hipblasLtMatrixLayout_t b_layout, const void* beta,
                                const void* c, hipblasLtMatrixLayout_t c_layout, void* d,
                                hipblasLtMatrixLayout_t d_layout,
                                const hipblasLtMatmulAlgo_t* algorithm, void* workspace,
                                std::size_t workspace_size, hipStream_t stream) {
  cublasLtMatmulAlgo_t chosen{};
  std::memcpy(chosen.data, algorithm->data, sizeof chosen.data[0]);
  return status_of(cublasLtMatmul(handle_of(handle), theirs(description), alpha, a,
                                  theirs(a_layout), b, theirs(b_layout), beta, c, theirs(c_layout),
                                  d, theirs(d_layout), &chosen, workspace, workspace_size, stream));
}

}  // extern "C"
