// Bytes that cuDNN's plans for backward request, for problems of many kinds. Tests of every build
// compare kzero's formula with them. tests/cudnn compares them with the library.
#pragma once

#include "kernels/attention/problem.hpp"

namespace kzero::kernels {

/// With q, k and v in rows of (H+2K)d.
inline AttentionProblem problem(Index batch, Index sequence, Index heads, Index kv_heads,
                                Index width) {
  const AttentionShape shape{batch, sequence, heads, kv_heads, width};
  const Index stride = shape.qkv_width();
  return {shape, Dtype::bf16, stride, stride, stride};
}

/// The fewest bytes of scratch with which cuDNN 9.27.0 has plans, on sm_80, sm_90 and sm_100. 0: it
/// has none. The first plan on sm_90, which is faster, needs more.
struct Requested {
  AttentionProblem problem;
  Index ampere, hopper, first_on_hopper, blackwell;
};

inline const Requested cudnn_requests[] = {
    {problem(4, 1024, 12, 12, 64), 100860032, 100860032, 100860160, 196608},
    {problem(1, 1024, 32, 8, 128), 84017280, 84017280, 84017408, 33685632},
    {problem(2, 1023, 6, 2, 80), 29143376, 29143376, 29143504, 7905872},
    {problem(1, 17, 4, 2, 32), 41872, 41872, 74768, 17808},
    {problem(2, 1000, 12, 12, 64), 50427776, 50427776, 50427904, 96000},
    {problem(1, 2048, 8, 8, 256), 0, 67174656, 67174656, 65536},
    {problem(1, 512, 8, 2, 256), 0, 8405248, 8405248, 12599424},
    {problem(3, 100, 4, 4, 64), 398144, 398144, 398272, 4800},
    {problem(1, 2, 2, 1, 8), 16784, 16784, 33296, 656},
    {problem(1, 200, 5, 5, 200), 0, 659616, 659616, 0},
    {problem(2, 384, 12, 4, 96), 10653824, 10653824, 10653952, 7114880},
    {problem(1, 128, 4, 4, 24), 133248, 133248, 133376, 2048},
    {problem(16, 1024, 12, 12, 64), 403439744, 403439744, 403439872, 786432},
    // Scores of one key head need more than 1 GiB, so Ampere cannot.
    {problem(1, 32768, 8, 8, 128), 17180917888, 135299328, 135299328, 1048576},
    {problem(1, 32000, 8, 2, 64), 16450560128, 132128256, 132128256, 132096128},
    {problem(2, 24001, 4, 4, 80), 9265985696, 62234912, 62234912, 768032}};

}  // namespace kzero::kernels
