#include <algorithm>

#include "base/error.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

namespace {

// Large enough for a library kernel to run near its peak with little copying. The strides of a
// block of A and of its transpose are not multiples of 4 KiB (see packs_slowly).
constexpr Index block_m = 512, block_n = 1024, block_k = 512;

/// Copies rows [0,rows) x [0,columns) of a strided matrix, as fp32.
template <class T>
void copy_block(const Execution& exec, const T* from, Index stride, Index rows, Index columns,
                float* to) {
  Kokkos::parallel_for(
      "kzero::tensor::copy_block", Range(exec, 0, rows), KOKKOS_LAMBDA(Index i) {
        for (Index j = 0; j < columns; ++j)
          to[i * columns + j] = static_cast<float>(from[i * stride + j]);
      });
}

/// Copies the block of op(X) that begins at (row, column), as fp32 and in its memory order.
template <class T>
void copy_operand(const Execution& exec, const Operand& x, Index row, Index column, Index rows,
                  Index columns, float* to) {
  const auto* data = static_cast<const T*>(x.data);
  if (x.transpose == Transpose::no) {
    copy_block(exec, data + row * x.stride + column, x.stride, rows, columns, to);
  } else {
    copy_block(exec, data + column * x.stride + row, x.stride, columns, rows, to);
  }
}

/// Adds bias and addend to the finished sums of C's block [m,n] at (i, j), and rounds them.
template <class T, class Out>
void round_block(const Execution& exec, const GemmProblem& p, Index i, Index j, Index m, Index n,
                 const float* block) {
  const auto* bias = static_cast<const T*>(p.bias);
  const auto* addend = static_cast<const T*>(p.addend);
  auto* out = static_cast<Out*>(p.c);
  const bool keep = p.accumulate == Accumulate::yes;
  const Index stride = p.c_stride, width = p.n;
  Kokkos::parallel_for(
      "kzero::tensor::round_block", Range(exec, 0, m), KOKKOS_LAMBDA(Index r) {
        Out* row = out + (i + r) * stride + j;
        for (Index s = 0; s < n; ++s) {
          float sum = block[r * n + s];
          if (bias) sum += static_cast<float>(bias[j + s]);
          if (addend) sum += static_cast<float>(addend[(i + r) * width + j + s]);
          if (keep) sum += static_cast<float>(row[s]);
          row[s] = static_cast<Out>(sum);
        }
      });
}

}  // namespace

BlockedGemm::BlockedGemm(Kernel kernel)
    : kernel_(kernel),
      a_(std::make_unique_for_overwrite<float[]>(block_m * block_k)),
      b_(std::make_unique_for_overwrite<float[]>(block_k * block_n)),
      c_(std::make_unique_for_overwrite<float[]>(block_m * block_n)) {}

template <class T, class Out>
void BlockedGemm::run_typed(const Execution& exec, const GemmProblem& p) {
  for (Index i = 0; i < p.m; i += block_m) {
    const Index m = std::min(block_m, p.m - i);
    for (Index j = 0; j < p.n; j += block_n) {
      const Index n = std::min(block_n, p.n - j);
      std::fill_n(c_.get(), m * n, 0.0F);
      for (Index l = 0; l < p.k; l += block_k) {
        const Index k = std::min(block_k, p.k - l);
        copy_operand<T>(exec, p.a, i, l, m, k, a_.get());
        copy_operand<T>(exec, p.b, l, j, k, n, b_.get());
        exec.fence("kzero::tensor::copied");
        kernel_(p.a.transpose, p.b.transpose, m, n, k, a_.get(),
                p.a.transpose == Transpose::no ? k : m, b_.get(),
                p.b.transpose == Transpose::no ? n : k, c_.get(), n);
      }
      round_block<T, Out>(exec, p, i, j, m, n, c_.get());
    }
  }
}

void BlockedGemm::run(const Execution& exec, const GemmProblem& p) {
  const auto run_from = [&]<class T>(T) {
    if (p.out == Dtype::fp32) {
      run_typed<T, float>(exec, p);
    } else {
      run_typed<T, T>(exec, p);
    }
  };
  switch (p.in) {
    case Dtype::fp32:
      return run_typed<float, float>(exec, p);
    case Dtype::bf16:
      return run_from(bf16{});
    case Dtype::fp16:
      return run_from(fp16{});
  }
}

void prepare_output(const Execution& exec, const GemmProblem& p) {
  if (p.accumulate == Accumulate::yes && !p.bias) return;
  const auto* bias = static_cast<const float*>(p.bias);
  const auto* addend = static_cast<const float*>(p.addend);
  const bool keep = p.accumulate == Accumulate::yes;
  auto* c = static_cast<float*>(p.c);
  const Index n = p.n, stride = p.c_stride;
  Kokkos::parallel_for(
      "kzero::tensor::prepare_output", Range(exec, 0, p.m), KOKKOS_LAMBDA(Index i) {
        for (Index j = 0; j < n; ++j) {
          c[i * stride + j] = (keep ? c[i * stride + j] : 0.0F) + (bias ? bias[j] : 0.0F) +
                              (addend ? addend[i * n + j] : 0.0F);
        }
      });
}

}  // namespace kzero::tensor
