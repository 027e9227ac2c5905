// The GEMM library of builds for CUDA or HIP. hipBLASLt has cuBLASLt's functions under its own
// names, so gemm_cublaslt.cpp is written with cuBLASLt's names. In HIP builds this header replaces
// them. Where the two libraries differ, both forms are here.
#pragma once

#ifdef KZERO_HIP
#include <hipblaslt/hipblaslt.h>

#define CUBLASLT_EPILOGUE_BIAS HIPBLASLT_EPILOGUE_BIAS
#define CUBLASLT_EPILOGUE_DEFAULT HIPBLASLT_EPILOGUE_DEFAULT
#define CUBLASLT_EPILOGUE_DGELU HIPBLASLT_EPILOGUE_DGELU
#define CUBLASLT_MATMUL_DESC_BIAS_POINTER HIPBLASLT_MATMUL_DESC_BIAS_POINTER
#define CUBLASLT_MATMUL_DESC_EPILOGUE HIPBLASLT_MATMUL_DESC_EPILOGUE
#define CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD
#define CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER
#define CUBLASLT_MATMUL_DESC_TRANSA HIPBLASLT_MATMUL_DESC_TRANSA
#define CUBLASLT_MATMUL_DESC_TRANSB HIPBLASLT_MATMUL_DESC_TRANSB
#define CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
#define CUBLAS_COMPUTE_32F HIPBLAS_COMPUTE_32F
#define CUBLAS_OP_N HIPBLAS_OP_N
#define CUBLAS_OP_T HIPBLAS_OP_T
#define CUBLAS_STATUS_NOT_SUPPORTED HIPBLAS_STATUS_NOT_SUPPORTED
#define CUBLAS_STATUS_SUCCESS HIPBLAS_STATUS_SUCCESS
#define CUDA_R_16BF HIP_R_16BF
#define CUDA_R_16F HIP_R_16F
#define CUDA_R_32F HIP_R_32F
#define cublasLtContext void
#define cublasLtCreate hipblasLtCreate
#define cublasLtDestroy hipblasLtDestroy
#define cublasLtHandle_t hipblasLtHandle_t
#define cublasLtMatmul hipblasLtMatmul
#define cublasLtMatmulAlgoGetHeuristic hipblasLtMatmulAlgoGetHeuristic
#define cublasLtMatmulAlgo_t hipblasLtMatmulAlgo_t
#define cublasLtMatmulDescAttributes_t hipblasLtMatmulDescAttributes_t
#define cublasLtMatmulDescCreate hipblasLtMatmulDescCreate
#define cublasLtMatmulDescDestroy hipblasLtMatmulDescDestroy
#define cublasLtMatmulDescOpaque_t hipblasLtMatmulDescOpaque_t
#define cublasLtMatmulDescSetAttribute hipblasLtMatmulDescSetAttribute
#define cublasLtMatmulDesc_t hipblasLtMatmulDesc_t
#define cublasLtMatmulHeuristicResult_t hipblasLtMatmulHeuristicResult_t
#define cublasLtMatmulPreferenceAttributes_t hipblasLtMatmulPreferenceAttributes_t
#define cublasLtMatmulPreferenceCreate hipblasLtMatmulPreferenceCreate
#define cublasLtMatmulPreferenceDestroy hipblasLtMatmulPreferenceDestroy
#define cublasLtMatmulPreferenceOpaque_t hipblasLtMatmulPreferenceOpaque_t
#define cublasLtMatmulPreferenceSetAttribute hipblasLtMatmulPreferenceSetAttribute
#define cublasLtMatmulPreference_t hipblasLtMatmulPreference_t
#define cublasLtMatrixLayoutCreate hipblasLtMatrixLayoutCreate
#define cublasLtMatrixLayoutDestroy hipblasLtMatrixLayoutDestroy
#define cublasLtMatrixLayoutOpaque_t hipblasLtMatrixLayoutOpaque_t
#define cublasLtMatrixLayout_t hipblasLtMatrixLayout_t
#define cublasStatus_t hipblasStatus_t
#define cudaDataType_t hipDataType
#else
#include <cublasLt.h>
#endif

#include <fmt/format.h>

#include <string>

namespace kzero::tensor::blaslt {

#ifdef KZERO_HIP
inline constexpr const char* name = "hipBLASLt";

/// Only hipBLAS, a library that kzero does not link, has texts.
inline std::string text_of(cublasStatus_t status) {
  return fmt::format("status {}", static_cast<int>(status));
}

inline int version(cublasLtHandle_t handle) {
  int number = 0;
  return hipblasLtGetVersion(handle, &number) == HIPBLAS_STATUS_SUCCESS ? number : 0;
}
#else
inline constexpr const char* name = "cuBLASLt";

inline std::string text_of(cublasStatus_t status) {
  return fmt::format("{} ({})", cublasLtGetStatusName(status), cublasLtGetStatusString(status));
}

inline std::size_t version(cublasLtHandle_t /*handle*/) { return cublasLtGetVersion(); }
#endif

}  // namespace kzero::tensor::blaslt
