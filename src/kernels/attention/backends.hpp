// kzero's own attention back ends, and the table of a build's back ends. A back end is a class
// derived from AttentionBackend, with a line in the table of each build that has it. Only
// choose_attention and tests use them.
#pragma once

#include <memory>
#include <span>

#include "kernels/attention/attention.hpp"
#include "kernels/host/product.hpp"

namespace kzero::kernels {

template <class T>
struct AttentionEntry {
  AttentionKind name;
  std::unique_ptr<AttentionBackend<T>> (*make)(const AttentionProblem&);
};

/// The back ends of this build, the default first. kzero's kernels are last and compute every
/// problem. Each build compiles one of backends_host.cpp, backends_device.cpp and
/// backends_cudnn.cpp, which defines this function.
template <class T>
std::span<const AttentionEntry<T>> attention_backends();

template <class Backend, class T>
std::unique_ptr<AttentionBackend<T>> make(const AttentionProblem& problem) {
  return std::make_unique<Backend>(problem);
}

namespace host {

/// Attention for hosts. One thread per head of a sequence uses tiles of query rows and keys that
/// stay in a core's caches.
template <class T>
class Attention : public AttentionBackend<T> {
 public:
  using Products = ProductBackend<HostElement<T>>;

  explicit Attention(const AttentionProblem& problem,
                     const Products& products = product_backend<HostElement<T>>())
      : problem_(problem), products_(products) {}

  Index scratch_bytes(Index threads) const override;
  void start(Vector<float> scratch) override { scratch_ = scratch; }
  void forward(const Execution& exec, const HeadOperands<const T>& in, const AttentionRows& rows,
               Matrix<T> out, Matrix<float> log_sum) const override;
  void backward(const Execution& exec, const HeadOperands<const T>& in, const AttentionRows& rows,
                Matrix<const T> out, Matrix<const float> log_sum, Matrix<const T> dout,
                const HeadOperands<T>& gradients) const override;

 private:
  template <class Mask>
  void forward_with(const Execution& exec, const HeadOperands<const T>& in, const Mask& all,
                    Matrix<T> out, Matrix<float> log_sum) const;
  template <class Mask>
  void backward_with(const Execution& exec, const HeadOperands<const T>& in, const Mask& all,
                     Matrix<const T> out, Matrix<const float> log_sum, Matrix<const T> dout,
                     const HeadOperands<T>& gradients) const;

  AttentionProblem problem_;
  Products products_;
  Vector<float> scratch_;
};

}  // namespace host

namespace device {

/// Attention for devices, with matrix products by Arithmetic. Defined in device_tiles.hpp.
template <class Arithmetic, class T>
class Attention : public AttentionBackend<T> {
 public:
  explicit Attention(const AttentionProblem& problem)
      : shape_(problem.shape), scale_(problem.factor()) {}

  Index scratch_bytes(Index /*threads*/) const override {
    return shape_.batch * shape_.heads * shape_.sequence * static_cast<Index>(sizeof(float));
  }
  void start(Vector<float> scratch) override { scratch_ = scratch; }
  void forward(const Execution& exec, const HeadOperands<const T>& in, const AttentionRows& rows,
               Matrix<T> out, Matrix<float> log_sum) const override;
  void backward(const Execution& exec, const HeadOperands<const T>& in, const AttentionRows& rows,
                Matrix<const T> out, Matrix<const float> log_sum, Matrix<const T> dout,
                const HeadOperands<T>& gradients) const override;

 private:
  AttentionShape shape_;
  float scale_;  // of scores
  Vector<float> scratch_;
};

}  // namespace device

/// The products that CMake selects. cuda.cpp has those of NVIDIA GPUs. device.cpp has those of all
/// others, including hosts, where tests run them.
struct DeviceArithmetic;

}  // namespace kzero::kernels
