// What every unit of a model computes with: the device, the product library, the shape of a
// micro-batch and the scratch memory that units share because they run one after the other.
#pragma once

#include <optional>

#include "kernels/attention.hpp"
#include "memory/arenas.hpp"
#include "model/gpt_spec.hpp"
#include "tensor/gemm.hpp"
#include "tensor/view.hpp"

namespace kzero::model {

using tensor::Execution;
using tensor::Matrix;
using tensor::Vector;

struct BatchShape {
  Index batch = 0;    // B sequences
  Index threads = 1;  // that may run heads of attention at once
};

template <class T>
struct Context {
  std::optional<Execution> exec;  // none while measuring, which needs no device
  tensor::Gemm* gemm = nullptr;
  GptShape shape;
  Index batch = 0;  // B
  Index rows = 0;   // N = B * T

  // Scratch. wide and the head's logits share one range: no unit needs both.
  T* wide = nullptr;        // [N, max(F, 3D)]
  float* logits = nullptr;  // [chunk, V]
  T* dlogits = nullptr;     // [chunk, V]; the logits themselves in fp32
  Index chunk = 0;          // rows of logits that exist at once
  Matrix<T> narrow;         // [N, D]
  Matrix<float> partial;    // [row_groups, max(F, 3D)] of sums over rows
  Vector<float> attention;  // scratch of the attention kernel
  Vector<float> losses;     // [N]

  /// Takes the scratch from the workspace category. Also on measuring arenas.
  Context(memory::Arenas& arenas, tensor::Gemm* gemm, const GptShape& shape,
          const BatchShape& batch);

  kernels::AttentionShape attention_shape() const {
    return {batch, shape.sequence, shape.heads, shape.hidden};
  }
  Matrix<T> wide_view(Index columns) const { return {wide, rows, columns}; }
};

}  // namespace kzero::model
