// Token and position embedding: x = wte[token] + wpe[position]. The backward sum over equal tokens
// runs in the order of the batch, in fp32, with one team per distinct token: no atomics, so the
// same bits in every run.
#pragma once

#include "kernels/row_sums.hpp"

namespace kzero::kernels {

/// The rows of a batch sorted by token: distinct token u occurs in rows order[begin[u] ..
/// begin[u+1]), ascending. Arrays of N, N + 1 and N elements, of which the first `distinct` (+ 1)
/// are used.
struct TokenGroups {
  Vector<const Index> order;
  Vector<const Index> begin;
  Vector<const Token> token;
  Index distinct = 0;
};

/// Computes x [N,D] with row i at position i mod T; tokens [N], wte [V,D], wpe [>=T,D]. Overwrites
/// x.
template <class T>
void embedding_forward(const Execution& exec, Vector<const Token> tokens, Matrix<const T> wte,
                       Matrix<const T> wpe, Index sequence, Matrix<T> x);

/// Looks up the rows of the table that are local to a tensor rank, wte [v,D] from token
/// `first_token` on: x [N,D] is wte[token], or zero if another rank has the token. Overwrites x.
template <class T>
void embedding_lookup(const Execution& exec, Vector<const Token> tokens, Matrix<const T> wte,
                      Index first_token, Matrix<T> x);

/// Adds wpe[position] to x [n,D], whose row i is row first_row + i of the batch.
template <class T>
void add_positions(const Execution& exec, Matrix<const T> wpe, Index sequence, Index first_row,
                   Matrix<T> x);

/// Adds wpe[positions[i]] to row i of x [n,D].
template <class T>
void add_positions_at(const Execution& exec, Matrix<const T> wpe, Vector<const Index> positions,
                      Matrix<T> x);

/// Adds to dwte [v,D], which has the tokens from `first_token` on, and overwrites or adds to dwpe
/// [T,D], if there are learned positions, as `mode` says; dx [N,D].
template <class T>
void embedding_backward(const Execution& exec, const TokenGroups& groups, Matrix<const T> dx,
                        Index sequence, Index first_token, Matrix<T> dwte, Update mode,
                        Matrix<T> dwpe);

}  // namespace kzero::kernels
