#include "doubles/cublaslt_product.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/float16.hpp"

namespace kzero::tests {

namespace {

template <class Body>
void with_type(cudaDataType_t type, const Body& body) {
  if (type == CUDA_R_32F) return body(float{});
  if (type == CUDA_R_16BF) return body(bf16{});
  if (type == CUDA_R_16F) return body(fp16{});
  ADD_FAILURE() << "data type " << type;
}

float element(const void* data, cudaDataType_t type, std::uint64_t at) {
  float value = 0;
  with_type(type,
            [&](auto t) { value = static_cast<float>(static_cast<const decltype(t)*>(data)[at]); });
  return value;
}

double gelu_gradient(double x) {
  const double root = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

void set_element(void* data, cudaDataType_t type, std::uint64_t at, float value) {
  with_type(type, [&](auto t) {
    using T = decltype(t);
    static_cast<T*>(data)[at] = static_cast<T>(value);
  });
}

}  // namespace

std::size_t size_of(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }

bool adds_bias(const Shape& s) { return s.epilogue == CUBLASLT_EPILOGUE_BIAS; }
bool has_gelu_gradient(const Shape& s) { return s.epilogue == CUBLASLT_EPILOGUE_DGELU; }

bool overlap(const void* x, const Layout& of_x, const void* y, const Layout& of_y) {
  const auto* first = static_cast<const char*>(x);
  const auto* second = static_cast<const char*>(y);
  const auto size = [](const Layout& l) {
    return ((l.columns - 1) * static_cast<std::uint64_t>(l.stride) + l.rows) * size_of(l.type);
  };
  return first < second + size(of_y) && second < first + size(of_x);
}

void multiply(const Shape& s, const Call& call, const EpilogueOperands& operands) {
  const auto at = [](const Layout& l, std::uint64_t row, std::uint64_t column) {
    return column * static_cast<std::uint64_t>(l.stride) + row;
  };
  const bool a_plain = s.a_operation == CUBLAS_OP_N, b_plain = s.b_operation == CUBLAS_OP_N;
  const std::uint64_t depth = a_plain ? s.a.columns : s.a.rows;
  for (std::uint64_t i = 0; i < s.d.rows; ++i) {
    for (std::uint64_t j = 0; j < s.d.columns; ++j) {
      float sum = 0;
      for (std::uint64_t l = 0; l < depth; ++l) {
        sum += element(call.a, s.a.type, a_plain ? at(s.a, i, l) : at(s.a, l, i)) *
               element(call.b, s.b.type, b_plain ? at(s.b, l, j) : at(s.b, j, l));
      }
      float value = call.alpha * sum;
      if (call.beta != 0) value += call.beta * element(call.c, s.c.type, at(s.c, i, j));
      if (adds_bias(s)) value += element(operands.bias, s.d.type, i);
      if (has_gelu_gradient(s)) {
        const auto in = j * static_cast<std::uint64_t>(s.aux_stride) + i;
        value *= static_cast<float>(gelu_gradient(element(operands.aux, s.d.type, in)));
      }
      set_element(call.d, s.d.type, at(s.d, i, j), value);
    }
  }
}

}  // namespace kzero::tests
