#include "kernels/attention/problem.hpp"

namespace kzero::kernels {

namespace {

constexpr Index query_rows = 64, key_rows = 128;  // of a tile

/// Scratch of a call with this many sequences and key heads, with room to align its parts.
Index call_bytes(const AttentionProblem& p, Index sequences, Index kv_heads, bool stores_scores) {
  const AttentionShape& s = p.shape;
  const Index heads = sequences * kv_heads * s.group(), t = s.sequence;
  Index bytes = round_up(heads * t * 4, AttentionCalls::alignment) + 16 * AttentionCalls::alignment;
  if (!p.has_backward) return bytes;
  const Index gradient = round_up(heads * t * s.head_width * 4, AttentionCalls::alignment);
  if (!p.fixed_order) {
    // dq, and on Ampere another array, whose rows are rounded up to 8
    bytes +=
        gradient + round_up(heads * round_up(t, 8) * s.head_width * 4, AttentionCalls::alignment);
  } else if (stores_scores) {
    bytes += heads * round_up(t, query_rows) * round_up(t, key_rows) * 2;
  } else {
    bytes += gradient + heads * round_up(t, query_rows) / query_rows * 8;  // and its tiles' turns
  }
  // dk and dv: 16 bits each on Ampere and Hopper; fp32 on Blackwell, which adds no dq there.
  if (s.group() > 1) bytes += stores_scores && p.fixed_order ? 2 * gradient : gradient;
  return bytes;
}

/// The largest divisor of `count` for which the bytes fit, or 0 if 1 does not fit either.
template <class F>
Index largest_part(Index count, Index max_bytes, const F& bytes_of) {
  for (Index parts = 1; parts <= count; ++parts) {
    if (count % parts == 0 && bytes_of(count / parts) <= max_bytes) return count / parts;
  }
  return 0;
}

}  // namespace

void AttentionCalls::divide(const AttentionProblem& p) {
  const Index all = p.shape.kv_heads;
  const auto bytes_of = [&](Index batch, Index heads) {
    return call_bytes(p, batch, heads, stores_scores);
  };
  sequences = largest_part(p.shape.batch, p.max_scratch, [&](Index n) { return bytes_of(n, all); });
  kv_heads = all;
  if (sequences == 0) {
    sequences = 1;
    kv_heads = largest_part(all, p.max_scratch, [&](Index n) { return bytes_of(1, n); });
  }
  plan_bytes = kv_heads == 0 ? 0 : bytes_of(sequences, kv_heads);
}

AttentionCalls::AttentionCalls(const AttentionProblem& p) {
  stores_scores = p.fixed_order;
  divide(p);
  if (kv_heads > 0 || !p.has_backward || !p.fixed_order) return;
  stores_scores = false;
  divide(p);
}

}  // namespace kzero::kernels
