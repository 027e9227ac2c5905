// The attention of one model: the library's where the build has one and it can do the shape, else
// kzero's kernels. Chosen by the constructor, never inside a step.
#pragma once

#include <memory>
#include <string>

#include "kernels/attention/attention.hpp"
#include "kernels/attention/library.hpp"
#include "memory/arenas.hpp"

namespace kzero::kernels {

/// What a model may take: the library if it can, the library or an error, kzero's kernels.
enum class AttentionChoice { automatic, library, own };

template <class T>
class AttentionBackend {
 public:
  /// Takes scratch for `threads` concurrent threads from the workspace category: as much as either
  /// may need, whatever the device turns out to do. Asks no device on measuring arenas. Throws
  /// Error(usage) if the library is demanded and cannot do it.
  AttentionBackend(memory::Arenas& arenas, const AttentionProblem& problem, AttentionChoice choice,
                   Index threads);

  /// As attention_forward and attention_backward, with operands of the problem's strides.
  void forward(const Execution& exec, const HeadOperands<const T>& in, Matrix<T> out,
               Matrix<float> log_sum) const;
  void backward(const Execution& exec, const HeadOperands<const T>& in, Matrix<const T> out,
                Matrix<const float> log_sum, Matrix<const T> dout,
                const HeadOperands<T>& gradients) const;

  /// What the bits depend on; empty in builds without a library.
  std::string arithmetic() const;

  /// Why kzero's kernels compute although the library was wanted; empty if it does, or was not.
  const std::string& refusal() const { return refusal_; }

 private:
  AttentionProblem problem_;
  Vector<float> scratch_;
  std::shared_ptr<AttentionLibrary> library_;  // none: kzero's kernels
  std::string refusal_;
};

}  // namespace kzero::kernels
