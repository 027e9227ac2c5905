// Token and position embedding: x = wte[token] + wpe[position]. The backward sum over equal tokens
// runs in the order of the batch, in fp32, one team a distinct token: no atomics, so the same bits
// every time.
#pragma once

#include "kernels/row_sums.hpp"

namespace kzero::kernels {

/// The rows of a batch sorted by token: distinct token u stands at rows order[begin[u] ..
/// begin[u+1]), ascending. Arrays of N, N + 1 and N elements of which the first `distinct` (+ 1)
/// count.
struct TokenGroups {
  Vector<const Index> order;
  Vector<const Index> begin;
  Vector<const Token> token;
  Index distinct = 0;
};

/// tokens [N]; wte [V,D], wpe [>=T,D], x [N,D] with row i at position i mod T. Overwrites x.
template <class T>
void embedding_forward(const Execution& exec, Vector<const Token> tokens, Matrix<const T> wte,
                       Matrix<const T> wpe, Index sequence, Matrix<T> x);

/// Rows of the table that a tensor rank holds, wte [v,D] from token `first_token` on: x [N,D] is
/// wte[token], or zero where another rank has the token.
template <class T>
void embedding_lookup(const Execution& exec, Vector<const Token> tokens, Matrix<const T> wte,
                      Index first_token, Matrix<T> x);

/// x [n,D] += wpe[position], row i being row first_row + i of the batch.
template <class T>
void add_positions(const Execution& exec, Matrix<const T> wpe, Index sequence, Index first_row,
                   Matrix<T> x);

/// dx [N,D]. Adds to dwte [v,D], which holds tokens from `first_token` on; overwrites or adds to
/// dwpe [T,D] as `mode` says.
template <class T>
void embedding_backward(const Execution& exec, const TokenGroups& groups, Matrix<const T> dx,
                        Index sequence, Index first_token, Matrix<T> dwte, Update mode,
                        Matrix<T> dwpe);

}  // namespace kzero::kernels
