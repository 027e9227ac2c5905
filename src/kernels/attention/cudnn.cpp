#include "base/error.hpp"
#include "kernels/attention/cudnn_plans.hpp"
#include "kernels/attention/library.hpp"
#include "runtime/cuda_stream.hpp"

namespace kzero::kernels {

namespace {

constexpr Index most_head_width = 256, head_step = 8;

class CudnnAttention : public AttentionLibrary {
 public:
  explicit CudnnAttention(const AttentionProblem& problem) : plans_(problem) {}

  std::string name() const override { return CudnnAttentionPlans::name(); }
  void forward(const tensor::Execution& exec, const ForwardOperands& at, void* scratch) override {
    plans_.forward(runtime::stream_of(exec), at, scratch);
  }
  void backward(const tensor::Execution& exec, const BackwardOperands& at, void* scratch) override {
    plans_.backward(runtime::stream_of(exec), at, scratch);
  }

 private:
  CudnnAttentionPlans plans_;
};

}  // namespace

bool has_attention_library() { return true; }

std::string attention_refusal(const AttentionProblem& p) {
  const AttentionShape& s = p.shape;
  if (p.type == Dtype::fp32) return "cuDNN's attention is for 16 bits";
  if (s.head_width > most_head_width || s.head_width % head_step != 0) {
    return fmt::format("cuDNN's attention is for heads up to {} wide and a multiple of {}, not {}",
                       most_head_width, head_step, s.head_width);
  }
  if (s.sequence == 1) return "cuDNN's attention is for sequences of two tokens and more";
  if (AttentionCalls(p).kv_heads == 0) {
    return fmt::format(
        "cuDNN's backward at {} tokens needs more than {} MiB of scratch for the heads of one key",
        s.sequence, p.most_scratch >> 20);
  }
  return {};
}

std::unique_ptr<AttentionLibrary> make_attention_library(const AttentionProblem& problem) {
  return std::make_unique<CudnnAttention>(problem);
}

}  // namespace kzero::kernels
