// The seam to a library's attention, which takes the place of kzero's kernels where a build has one
// and it can do a model's shape: attention_cudnn.cpp, or attention_no_library.cpp in other builds.
#pragma once

#include <memory>
#include <string>

#include "kernels/attention/problem.hpp"
#include "tensor/view.hpp"

namespace kzero::kernels {

/// A library's attention for one problem. Its plans exist when it does: calls make none.
class AttentionLibrary {
 public:
  virtual ~AttentionLibrary() = default;

  /// The library and its version: what bits depend on beside the problem and the device.
  virtual std::string name() const = 0;

  /// Enqueue on `exec`; scratch has the scratch_bytes() of AttentionCalls.
  virtual void forward(const tensor::Execution& exec, const ForwardOperands& at, void* scratch) = 0;
  virtual void backward(const tensor::Execution& exec, const BackwardOperands& at,
                        void* scratch) = 0;
};

/// Returns whether this build links such a library.
bool has_attention_library();

/// Returns why the library is not asked about a problem, by rules that need no device; empty if it
/// is.
std::string attention_refusal(const AttentionProblem& problem);

/// Makes the plans for the current device, once a run. Throws Error(other) with the library's
/// reason if it has none.
std::unique_ptr<AttentionLibrary> make_attention_library(const AttentionProblem& problem);

}  // namespace kzero::kernels
