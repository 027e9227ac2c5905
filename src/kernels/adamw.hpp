// AdamW (Loshchilov and Hutter, arXiv 1711.05101): decoupled weight decay, bias-corrected moments.
// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w = w (1 - lr decay) - lr (m/c1) / (sqrt(v/c2) +
// eps).
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

struct AdamWStep {
  float lr = 0;
  float beta1 = 0, beta2 = 0;
  float rest1 = 1, rest2 = 1;  // 1 - beta, subtracted in fp64: in fp32 0.999 leaves 5e-5 of error
  float eps = 0;
  float decay = 0;           // 0 where the parameter does not decay
  float correction1 = 1;     // 1 - beta1^t
  float correction2 = 1;     // 1 - beta2^t
  float gradient_scale = 1;  // unscaling and clipping in one factor
};

/// master, first and second moments and gradient [n]. Updates the first three in fp32 and writes
/// the rounded weights to parameters [n], which is master itself in an fp32 run.
template <class T>
void adamw(const Execution& exec, const AdamWStep& step, Vector<const T> gradient,
           Vector<float> master, Vector<float> first, Vector<float> second, Vector<T> parameters);

}  // namespace kzero::kernels
