// Attention for hosts: one thread per head of a sequence, tiles of query rows and keys that stay in
// a core's caches.
#pragma once

#include "kernels/attention/attention.hpp"
#include "kernels/host/product.hpp"

namespace kzero::kernels::host {

/// How the tiles of heads of type T are multiplied.
template <class T>
using HostProducts = ProductBackend<HostElement<T>>;

template <class T>
Index attention_scratch_bytes(const AttentionShape& shape, Index threads);

template <class T>
void attention_forward(const Execution& exec, const AttentionShape& shape,
                       const HeadOperands<const T>& in, Matrix<T> out, Matrix<float> log_sum,
                       Vector<float> scratch,
                       const HostProducts<T>& products = product_backend<HostElement<T>>());
template <class T>
void attention_backward(const Execution& exec, const AttentionShape& shape,
                        const HeadOperands<const T>& in, Matrix<const T> out,
                        Matrix<const float> log_sum, Matrix<const T> dout,
                        const HeadOperands<T>& gradients, Vector<float> scratch,
                        const HostProducts<T>& products = product_backend<HostElement<T>>());

}  // namespace kzero::kernels::host
