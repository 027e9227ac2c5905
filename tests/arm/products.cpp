// Prints a hash of products' bits for each GEMM library, precision and length of the sums. Two
// processors whose lines are alike multiply alike: tests/arm/run.sh compares x86-64 with AArch64.
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/checksum.hpp"
#include "runtime/session.hpp"
#include "tensor/gemm.hpp"

namespace {

using namespace kzero;  // NOLINT(google-build-using-namespace): a program of one file
using tensor::Transpose;

struct Shape {
  Index m, n, k;
};

/// Numbers between -1 and 1 with all bits of their mantissas in use: xorshift64
/// (https://www.jstatsoft.org/article/view/v008i14).
template <class T>
std::vector<T> numbers(Index count, std::uint64_t state) {
  std::vector<T> values;
  for (Index i = 0; i < count; ++i) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    values.push_back(
        static_cast<T>(static_cast<float>(static_cast<std::int32_t>(state >> 32U)) * 0x1p-31F));
  }
  return values;
}

/// The forward product, the gradients of activations and of weights, as a layer has them.
template <class T>
std::string digests(tensor::Gemm& gemm, const Shape& s) {
  const auto a = numbers<T>(s.m * s.k, 88172645463325252U),
             b = numbers<T>(s.k * s.n, 1442695040888963407U);
  std::string text;
  for (const auto& [of_a, of_b] : {std::pair{Transpose::no, Transpose::yes},
                                   {Transpose::no, Transpose::no},
                                   {Transpose::yes, Transpose::no}}) {
    std::vector<T> c(s.m * s.n);
    gemm.run(tensor::Execution(), {.m = s.m,
                                   .n = s.n,
                                   .k = s.k,
                                   .a = {a.data(), of_a == Transpose::no ? s.k : s.m, of_a},
                                   .b = {b.data(), of_b == Transpose::no ? s.n : s.k, of_b},
                                   .c = c.data(),
                                   .c_stride = s.n,
                                   .in = dtype_of<T>,
                                   .out = dtype_of<T>});
    text += " " + format_checksum(checksum(std::as_bytes(std::span(c))));
  }
  return text;
}

void print_products() {
  // Odd sizes reach the ends of a library's loops; the last sums are those of a width of 1024.
  constexpr Shape shapes[] = {{33, 70, 128},  {33, 70, 256},  {33, 70, 384},   {33, 70, 512},
                              {64, 96, 512},  {33, 70, 768},  {33, 70, 1024},  {64, 96, 1024},
                              {33, 70, 2048}, {33, 70, 4096}, {256, 256, 1024}};
  for (const tensor::GemmBackend backend : tensor::backends()) {
    const auto gemm = tensor::make_gemm(backend);
    fmt::print("# {}\n", gemm->arithmetic());
    for (const Shape& s : shapes) {
      const auto print = [&](std::string_view type, const std::string& found) {
        fmt::print("{} {} {} x {} x {}:{}\n", deck::name_of(backend), type, s.m, s.n, s.k, found);
      };
      print("fp32", digests<float>(*gemm, s));
      print("bf16", digests<bf16>(*gemm, s));
    }
  }
}

}  // namespace

int main() {
  const runtime::KokkosAlone kokkos(1);
  print_products();
}
