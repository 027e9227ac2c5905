// Drives a build's library for attention, in calls of every size.
#pragma once

#include "unit/kernels/attention_cases.hpp"

namespace kzero::kernels {

/// Scratch for calls of one sequence each and then of one head of the keys.
inline AttentionProblem in_parts(AttentionProblem p, Index sequences, Index kv_heads) {
  AttentionProblem part = p;
  part.shape.batch = sequences;
  part.shape.kv_heads = kv_heads;
  part.shape.heads = kv_heads * p.shape.group();
  p.max_scratch = AttentionCalls(part).plan_bytes;
  return p;
}

/// Whole micro-batches, sequences or single heads a call; or scratch in which the gradients of no
/// head's scores fit.
enum class Calls { one, of_sequences, of_heads, without_scores };

inline AttentionProblem cut(const AttentionProblem& p, Calls calls) {
  if (calls == Calls::of_sequences) return in_parts(p, 1, p.shape.kv_heads);
  if (calls == Calls::one) return p;
  AttentionProblem of_heads = in_parts(p, 1, 1);
  if (calls == Calls::without_scores) --of_heads.max_scratch;
  return of_heads;
}

/// The first back end of this build: its library for attention, if it has one.
template <class T>
std::unique_ptr<AttentionBackend<T>> make_library(const AttentionProblem& problem) {
  return attention_backends<T>().front().make(problem);
}

/// The library behind the checks of attention_cases.hpp. cuDNN stores the gradients of each query
/// head as T before it adds those of heads that share keys (9.19 on an H200).
template <Calls calls>
struct Library {
  template <class T>
  static Rounding rounding() {
    Rounding rounding = stored_probabilities<T>();
    rounding.of_shared_parts = tests::round_off<T>;
    return rounding;
  }
  template <class T>
  static std::unique_ptr<AttentionBackend<T>> make(const AttentionProblem& problem) {
    return make_library<T>(cut(problem, calls));
  }
};

/// The results of forward and backward.
template <class T>
struct AttentionResults {
  std::vector<T> out, gradients;
  std::vector<float> log_sum;

  bool operator==(const AttentionResults& other) const {
    return tests::same_bits(out, other.out) && tests::same_bits(gradients, other.gradients) &&
           tests::same_bits(log_sum, other.log_sum);
  }
};

/// Runs a problem on operands that lie anywhere.
template <class T>
AttentionResults<T> run_library(const AttentionProblem& p, const T* q, const T* k, const T* v) {
  const AttentionShape& s = p.shape;
  const Index rows = s.batch * s.sequence;
  const Guarded<T> dout(numbers<T>(rows * s.width(), 2)), out(rows * s.width()),
      gradients(rows * s.qkv_width());
  const auto library = make_library<T>(p);
  const Guarded<float> logs(s.batch * s.heads * s.sequence), scratch(library->scratch_bytes(1) / 4);
  library->start(scratch.vector());
  const HeadOperands<const T> in{{q, p.q_stride}, {k, p.k_stride}, {v, p.v_stride}};
  const auto o = out.matrix(rows, s.width());
  const auto log_sum = logs.matrix(s.batch * s.heads, s.sequence);
  library->forward({}, in, {}, o, log_sum);
  library->backward({}, in, {}, o, log_sum, dout.matrix(rows, s.width()),
                    operands_in(gradients.matrix(rows, s.qkv_width()), s));
  return {out.host(), gradients.host(), logs.host()};
}

/// The chosen back end on its planned scratch, and operands in memory.
template <class T>
struct ChosenBackend {
  AttentionProblem problem;
  memory::Ledger ledger;
  memory::Arenas measured, arenas;
  ChosenAttention<T> attention;

  ChosenBackend(const AttentionShape& s, AttentionKind kind)
      : problem(problem_of<T>(s)),
        measured([&] {
          memory::Arenas counting;
          static_cast<void>(choose_attention<T>(counting, problem, kind, 1));
          return counting;
        }()),
        arenas(measured, ledger),
        attention(choose_attention<T>(arenas, problem, kind, 1)) {}
};

}  // namespace kzero::kernels
