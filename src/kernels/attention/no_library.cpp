// In builds without a library for attention.
#include "base/error.hpp"
#include "kernels/attention/library.hpp"

namespace kzero::kernels {

bool has_attention_library() { return false; }

std::string attention_refusal(const AttentionProblem& /*problem*/) {
  return "this build has no cuDNN";
}

std::unique_ptr<AttentionLibrary> make_attention_library(const AttentionProblem& problem) {
  fail(ExitCode::other, "{}", attention_refusal(problem));
}

}  // namespace kzero::kernels
