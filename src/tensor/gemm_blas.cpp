#include "tensor/gemm_backends.hpp"

// Every BLAS has the Fortran interface.
// NOLINTNEXTLINE(readability-identifier-naming): the library's symbol
extern "C" void sgemm_(const char* transa, const char* transb, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

namespace kzero::tensor {

namespace {

const char* blas_letter(Transpose t) { return t == Transpose::no ? "N" : "T"; }

/// Computes c = op(a) op(b) + beta c. Column-major BLAS sees the transposes of row-major operands:
/// C^T = B^T A^T.
void blas_product(Transpose ta, Transpose tb, Index m, Index n, Index k, const float* a, Index lda,
                  const float* b, Index ldb, float beta, float* c, Index ldc) {
  const int mi = static_cast<int>(m), ni = static_cast<int>(n), ki = static_cast<int>(k);
  const int ai = static_cast<int>(lda), bi = static_cast<int>(ldb), ci = static_cast<int>(ldc);
  const float one = 1;
  sgemm_(blas_letter(tb), blas_letter(ta), &ni, &mi, &ki, &one, b, &bi, a, &ai, &beta, c, &ci);
}

void add_blas_product(Transpose ta, Transpose tb, Index m, Index n, Index k, const float* a,
                      Index lda, const float* b, Index ldb, float* c, Index ldc) {
  blas_product(ta, tb, m, n, k, a, lda, b, ldb, 1, c, ldc);
}

class BlasGemm : public Gemm {
 public:
  void run(const Execution& exec, const GemmProblem& product) override;
  /// BLAS has no call that returns the library's name or version.
  std::string arithmetic() const override { return "BLAS"; }

 private:
  BlockedGemm blocked_{&add_blas_product};
};

void BlasGemm::run(const Execution& exec, const GemmProblem& p) {
  if (p.in != Dtype::fp32) return blocked_.run(exec, p);
  const bool adds = p.bias || p.addend || p.accumulate == Accumulate::yes;
  if (adds) prepare_output(exec, p);
  exec.fence("kzero::tensor::operands_ready");
  blas_product(p.a.transpose, p.b.transpose, p.m, p.n, p.k, static_cast<const float*>(p.a.data),
               p.a.stride, static_cast<const float*>(p.b.data), p.b.stride, adds ? 1 : 0,
               static_cast<float*>(p.c), p.c_stride);
}

}  // namespace

std::unique_ptr<Gemm> make_blas() { return make<BlasGemm>(); }

}  // namespace kzero::tensor
