#include "model/context.hpp"

#include <algorithm>

#include "kernels/reduction.hpp"

namespace kzero::model {

namespace {

constexpr Index logits_bytes = Index{16} << 20;  // aim for a chunk of fp32 logits (C_B)
constexpr Index least_chunk = 256;               // rows below which products lose their speed

/// Rows of logits at once: never the whole batch unless it is a single row.
Index chunk_rows(Index rows, Index vocab) {
  const Index aim = std::max(least_chunk, logits_bytes / (vocab * 4));
  return std::min(aim, ceil_div(rows, 2));
}

}  // namespace

template <class T>
Context<T>::Context(memory::Arenas& arenas, tensor::Gemm* products, const GptShape& s,
                    const BatchShape& b)
    : gemm(products), shape(s), batch(b.batch), rows(b.batch * s.sequence) {
  if (!arenas.measuring()) exec.emplace();
  const auto take = [&]<class U>(U, Index count) {
    return arenas.take<U>(memory::Category::workspace, count);
  };
  const Index columns = std::max(s.feed_forward, 3 * s.hidden);
  chunk = chunk_rows(rows, s.vocab);
  const bool in_place = dtype_of<T> == Dtype::fp32;
  const Index logit_elements = round_up(chunk * s.vocab, 16);
  const Index head_bytes = logit_elements * 4 + (in_place ? 0 : chunk * s.vocab * 2);
  const Index block_bytes = rows * columns * bytes_of(dtype_of<T>);
  auto* shared = take(std::byte{}, std::max(head_bytes, block_bytes));
  wide = reinterpret_cast<T*>(shared);
  logits = reinterpret_cast<float*>(shared);
  dlogits = in_place ? wide : reinterpret_cast<T*>(logits + logit_elements);
  narrow = Matrix<T>(take(T{}, rows * s.hidden), rows, s.hidden);
  partial =
      Matrix<float>(take(float{}, kernels::row_groups * columns), kernels::row_groups, columns);
  const Index scratch = kernels::attention_scratch_bytes(attention_shape(), b.threads) / 4;
  attention = Vector<float>(take(float{}, scratch), scratch);
  losses = Vector<float>(take(float{}, rows), rows);
}

template struct Context<float>;
template struct Context<bf16>;
template struct Context<fp16>;

}  // namespace kzero::model
