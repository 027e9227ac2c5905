// A host's products have the same bits on any number of threads. oneDNN alone would divide the sums
// of an element among three or more threads on processors without AVX-512. With it, it would divide
// 384 or more terms of small products among eight threads, and it would add 1024 of a transposed
// operand in another order on one thread than on several.
#include <gtest/gtest.h>

#include "support/products.hpp"

#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>

namespace kzero::tensor {

namespace {

using tests::Guarded;
using tests::Problem;

/// Has OpenMP start so many threads in this scope.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) { omp_set_num_threads(threads); }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_ = omp_get_max_threads();
};

template <class T>
std::vector<T> product_on(int threads, Gemm& gemm, const Problem<T>& problem, Transpose of_b) {
  const auto [m, n, k] = problem.s;
  const Guarded<T> a(problem.a), b(problem.b), c(m * n);
  const ThreadCount count(threads);
  gemm.run(Execution(),
           {.m = m,
            .n = n,
            .k = k,
            .a = operand(a.matrix(m, k)),
            .b = of_b == Transpose::no ? operand(b.matrix(k, n)) : operand(b.matrix(n, k), of_b),
            .c = c.data(),
            .c_stride = n,
            .in = dtype_of<T>,
            .out = dtype_of<T>});
  return c.host();
}

template <class T>
void keeps_its_bits() {
  if (!on_host) GTEST_SKIP() << "a device's products run on its own threads";
  const auto gemm = make_gemm(GemmBackend::onednn);
  for (const tests::Size size : {tests::Size{203, 1031, 530}, tests::Size{41, 37, 2100},
                                 tests::Size{32, 64, 448}, tests::Size{128, 512, 1024}}) {
    const Problem<T> problem(size);
    for (const Transpose of_b : {Transpose::no, Transpose::yes}) {
      const std::vector<T> alone = product_on(1, *gemm, problem, of_b);
      for (const int threads : {2, 3, 5, 8}) {
        EXPECT_TRUE(tests::same_bits(product_on(threads, *gemm, problem, of_b), alone))
            << threads << " threads, " << size.m << " x " << size.n << " x " << size.k;
      }
    }
  }
}

}  // namespace

TEST(ThreadCounts, KeepTheBitsOfFp32) { keeps_its_bits<float>(); }
TEST(ThreadCounts, KeepTheBitsOfBf16) { keeps_its_bits<bf16>(); }

}  // namespace kzero::tensor
#endif
