#include "kernels/attention/backend.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "runtime/profile.hpp"

namespace kzero::kernels {

namespace {

void require_strides(bool same) {
  KZERO_REQUIRE(same, ExitCode::other,
                "internal error: attention's operands have other strides than were planned");
}

/// Shows a call of the library to Kokkos' tools and to the time line.
template <class F>
void profiled(const Execution& exec, const char* name, const AttentionShape& s, const F& call) {
  const runtime::ProfileRegion region(
      [&] { return SpanName("{} {} {} {} {}", name, s.batch, s.sequence, s.heads, s.head_width); },
      SpanKind::kernel);
  call();
  if (!tensor::on_host && region.is_recorded()) exec.fence("kzero::kernels::attention_done");
}

}  // namespace

template <class T>
AttentionBackend<T>::AttentionBackend(memory::Arenas& arenas, const AttentionProblem& problem,
                                      AttentionChoice choice, Index threads)
    : problem_(problem) {
  const bool wants_library = choice == AttentionChoice::library ||
                             (choice == AttentionChoice::automatic && has_attention_library());
  if (wants_library) refusal_ = attention_refusal(problem);
  const bool asks_library = wants_library && refusal_.empty();
  Index bytes = attention_scratch_bytes<T>(problem.shape, threads);
  if (asks_library) bytes = std::max(bytes, AttentionCalls(problem).scratch_bytes());
  scratch_ = Vector<float>(arenas.take<float>(memory::Category::workspace, bytes / 4),
                           static_cast<std::size_t>(bytes / 4));
  if (asks_library && !arenas.measuring()) {
    try {
      library_ = make_attention_library(problem);
    } catch (const Error& error) {
      refusal_ = error.what();
    }
  }
  KZERO_REQUIRE(choice != AttentionChoice::library || refusal_.empty(), ExitCode::usage,
                "run.attention = \"cudnn\": {}; \"auto\" takes kzero's kernels then", refusal_);
}

template <class T>
void AttentionBackend<T>::forward(const Execution& exec, const HeadOperands<const T>& in,
                                  Matrix<T> out, Matrix<float> log_sum) const {
  const AttentionProblem& p = problem_;
  if (!library_) {
    attention_forward<T>(exec, p.shape, in, out, log_sum, scratch_);
    return;
  }
  require_strides(in.q.stride == p.q_stride && in.k.stride == p.k_stride &&
                  in.v.stride == p.v_stride);
  const ForwardOperands at{in.q.data, in.k.data, in.v.data, out.data(), log_sum.data()};
  profiled(exec, "kzero::kernels::attention_forward", p.shape,
           [&] { library_->forward(exec, at, scratch_.data()); });
}

template <class T>
void AttentionBackend<T>::backward(const Execution& exec, const HeadOperands<const T>& in,
                                   Matrix<const T> out, Matrix<const float> log_sum,
                                   Matrix<const T> dout, const HeadOperands<T>& gradients) const {
  const AttentionProblem& p = problem_;
  if (!library_) {
    attention_backward<T>(exec, p.shape, in, out, log_sum, dout, gradients, scratch_);
    return;
  }
  require_strides(in.q.stride == p.q_stride && in.k.stride == p.k_stride &&
                  in.v.stride == p.v_stride && gradients.q.stride == p.gradient_stride() &&
                  gradients.k.stride == p.gradient_stride() &&
                  gradients.v.stride == p.gradient_stride());
  const BackwardOperands at{in.q.data,        in.k.data,        in.v.data,
                            out.data(),       dout.data(),      log_sum.data(),
                            gradients.q.data, gradients.k.data, gradients.v.data};
  profiled(exec, "kzero::kernels::attention_backward", p.shape,
           [&] { library_->backward(exec, at, scratch_.data()); });
}

template <class T>
std::string AttentionBackend<T>::arithmetic() const {
  if (library_) return fmt::format("attention by {}", library_->name());
  return has_attention_library() ? "attention by kzero's kernels" : "";
}

#define KZERO_INSTANTIATE(T) template class AttentionBackend<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
