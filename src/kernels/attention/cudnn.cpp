#include <optional>

#include "base/error.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/attention/cudnn_plans.hpp"
#include "runtime/cuda_stream.hpp"
#include "runtime/profile.hpp"

namespace kzero::kernels {

namespace {

constexpr Index max_head_width = 256, head_step = 8;

template <class T>
class CudnnAttention : public AttentionBackend<T> {
 public:
  explicit CudnnAttention(const AttentionProblem& problem) : problem_(problem) {}

  std::string name() const override { return CudnnAttentionPlans::name(); }
  std::string refusal() const override;
  Index scratch_bytes(Index /*threads*/) const override {
    return AttentionCalls(problem_).scratch_bytes();
  }
  void start(Vector<float> scratch) override {
    scratch_ = scratch;
    plans_.emplace(problem_);
  }
  void forward(const Execution& exec, const HeadOperands<const T>& in, const AttentionRows& rows,
               Matrix<T> out, Matrix<float> log_sum) const override;
  void backward(const Execution& exec, const HeadOperands<const T>& in, const AttentionRows& rows,
                Matrix<const T> out, Matrix<const float> log_sum, Matrix<const T> dout,
                const HeadOperands<T>& gradients) const override;

 private:
  AttentionProblem problem_;
  Vector<float> scratch_;
  std::optional<CudnnAttentionPlans> plans_;
};

template <class T>
std::string CudnnAttention<T>::refusal() const {
  const AttentionShape& s = problem_.shape;
  if (problem_.type == Dtype::fp32) return "cuDNN's attention is for 16 bits";
  if (s.head_width > max_head_width || s.head_width % head_step != 0) {
    return fmt::format("cuDNN's attention is for heads up to {} wide and a multiple of {}, not {}",
                       max_head_width, head_step, s.head_width);
  }
  if (problem_.dropout) return "cuDNN's attention has other dropout masks than kzero's";
  if (problem_.documents)
    return "cuDNN's attention is for sequences of one document, without a window";
  if (s.sequence == 1) return "cuDNN's attention is for sequences of two tokens and more";
  if (AttentionCalls(problem_).kv_heads == 0) {
    return fmt::format(
        "cuDNN's backward at {} tokens needs more than {} MiB of scratch for the heads of one key",
        s.sequence, problem_.max_scratch >> 20);
  }
  return {};
}

template <class T>
void require_strides(const HeadOperands<T>& heads, Index q, Index k, Index v) {
  KZERO_REQUIRE(heads.q.stride == q && heads.k.stride == k && heads.v.stride == v, ExitCode::other,
                "internal error: attention's operands have other strides than were planned");
}

void require_plain(const AttentionRows& rows) {
  KZERO_REQUIRE(rows.documents.empty() && !rows.dropout.is_on(), ExitCode::other,
                "internal error: attention was planned for one document and no dropout");
}

/// Shows a library call to Kokkos' tools and in the time line.
template <class F>
void profiled(const Execution& exec, const char* name, const AttentionShape& s, const F& call) {
  const runtime::ProfileRegion region(
      [&] { return SpanName("{} {} {} {} {}", name, s.batch, s.sequence, s.heads, s.head_width); },
      SpanKind::kernel);
  call(runtime::stream_of(exec));
  if (!tensor::on_host && region.is_recorded()) exec.fence("kzero::kernels::attention_done");
}

template <class T>
void CudnnAttention<T>::forward(const Execution& exec, const HeadOperands<const T>& in,
                                const AttentionRows& rows, Matrix<T> out,
                                Matrix<float> log_sum) const {
  const AttentionProblem& p = problem_;
  require_plain(rows);
  require_strides(in, p.q_stride, p.k_stride, p.v_stride);
  const ForwardOperands at{in.q.data, in.k.data, in.v.data, out.data(), log_sum.data()};
  profiled(exec, "kzero::kernels::attention_forward", p.shape,
           [&](cudaStream_t stream) { plans_->forward(stream, at, scratch_.data()); });
}

template <class T>
void CudnnAttention<T>::backward(const Execution& exec, const HeadOperands<const T>& in,
                                 const AttentionRows& rows, Matrix<const T> out,
                                 Matrix<const float> log_sum, Matrix<const T> dout,
                                 const HeadOperands<T>& gradients) const {
  const AttentionProblem& p = problem_;
  require_plain(rows);
  const Index stride = p.gradient_stride();
  require_strides(in, p.q_stride, p.k_stride, p.v_stride);
  require_strides(gradients, stride, stride, stride);
  const BackwardOperands at{in.q.data,        in.k.data,        in.v.data,
                            out.data(),       dout.data(),      log_sum.data(),
                            gradients.q.data, gradients.k.data, gradients.v.data};
  profiled(exec, "kzero::kernels::attention_backward", p.shape,
           [&](cudaStream_t stream) { plans_->backward(stream, at, scratch_.data()); });
}

}  // namespace

template <class T>
std::unique_ptr<AttentionBackend<T>> make_cudnn_attention(const AttentionProblem& problem) {
  return std::make_unique<CudnnAttention<T>>(problem);
}

#define KZERO_INSTANTIATE(T) \
  template std::unique_ptr<AttentionBackend<T>> make_cudnn_attention<T>(const AttentionProblem&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
