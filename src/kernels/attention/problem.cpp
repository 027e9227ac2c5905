#include "kernels/attention/problem.hpp"

namespace kzero::kernels {

namespace {

constexpr Index query_rows = 64, key_rows = 128;  // the scores' gradients are rounded up to these

/// Scratch of a call with this many sequences and key heads, with room to align its parts.
Index call_bytes(const AttentionProblem& p, Index sequences, Index kv_heads) {
  const AttentionShape& s = p.shape;
  const Index heads = sequences * kv_heads * s.group(), t = s.sequence;
  Index bytes = round_up(heads * t * 4, AttentionCalls::alignment) + 16 * AttentionCalls::alignment;
  if (!p.has_backward) return bytes;
  bytes += heads * round_up(t, query_rows) * round_up(t, key_rows) * 2;
  // 16 bits each on Ampere and Hopper, fp32 on Blackwell.
  if (s.group() > 1) bytes += 2 * round_up(heads * t * s.head_width * 4, AttentionCalls::alignment);
  return bytes;
}

/// The largest divisor of `count` for which the bytes fit, or 0 if 1 does not fit either.
template <class F>
Index largest_part(Index count, Index most_bytes, const F& bytes_of) {
  for (Index parts = 1; parts <= count; ++parts) {
    if (count % parts == 0 && bytes_of(count / parts) <= most_bytes) return count / parts;
  }
  return 0;
}

}  // namespace

AttentionCalls::AttentionCalls(const AttentionProblem& p) {
  const Index all = p.shape.kv_heads;
  sequences =
      largest_part(p.shape.batch, p.most_scratch, [&](Index n) { return call_bytes(p, n, all); });
  kv_heads = all;
  if (sequences == 0) {
    sequences = 1;
    kv_heads = largest_part(all, p.most_scratch, [&](Index n) { return call_bytes(p, 1, n); });
  }
  plan_bytes = kv_heads == 0 ? 0 : call_bytes(p, sequences, kv_heads);
}

}  // namespace kzero::kernels
