// expert_products and expert_gradients on hosts (kernels/expert_products.hpp).
#pragma once

#include "kernels/expert_products.hpp"

namespace kzero::kernels::host {

template <class T>
void expert_products(const Execution& exec, std::span<const ExpertRows<const T>> experts,
                     const WeightShape& shape, tensor::Transpose transpose, Matrix<const T> x,
                     Matrix<T> y);

template <class T, class Out>
void expert_gradients(const Execution& exec, std::span<const ExpertRows<Out>> experts,
                      const WeightShape& shape, Matrix<const T> a, Matrix<const T> b,
                      tensor::Accumulate accumulate);

}  // namespace kzero::kernels::host
