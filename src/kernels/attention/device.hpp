// Attention for devices (attention_device_tiles.hpp) with the GEMM arithmetic that CMake selects:
// attention_cuda.cpp on NVIDIA GPUs, attention_device.cpp elsewhere, including hosts, where tests
// run it.
#pragma once

#include "kernels/attention/attention.hpp"

namespace kzero::kernels {

struct DeviceArithmetic;

namespace device {

Index attention_scratch_bytes(const AttentionShape& shape);

template <class Arithmetic, class T>
void attention_forward(const Execution& exec, const AttentionShape& shape,
                       const HeadOperands<const T>& in, Matrix<T> out, Matrix<float> log_sum);
template <class Arithmetic, class T>
void attention_backward(const Execution& exec, const AttentionShape& shape,
                        const HeadOperands<const T>& in, Matrix<const T> out,
                        Matrix<const float> log_sum, Matrix<const T> dout,
                        const HeadOperands<T>& gradients, Vector<float> scratch);

}  // namespace device

}  // namespace kzero::kernels
