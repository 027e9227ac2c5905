// Token and position embedding: x = wte[token] + wpe[position]. Positions are those of rows in
// their documents. Backward sums equal tokens in fp32 in the order of the batch, with one team per
// distinct token. It uses no atomics, so every run gives the same bits.
#pragma once

#include "kernels/documents.hpp"
#include "kernels/row_sums.hpp"

namespace kzero::kernels {

/// The rows of a batch sorted by token. Distinct token u occurs in rows order[begin[u] ..
/// begin[u+1]), ascending. The arrays have N, N + 1 and N elements. The first `distinct` (+ 1) are
/// used.
struct TokenGroups {
  Vector<const Index> order;
  Vector<const Index> begin;
  Vector<const Token> token;
  Index distinct = 0;
};

/// Computes x [N,D], whose rows are `rows`. tokens [N], wte [V,D], wpe [>=T,D]. Overwrites x.
template <class T>
void embedding_forward(const Execution& exec, Vector<const Token> tokens, Matrix<const T> wte,
                       Matrix<const T> wpe, const StreamRows& rows, const Documents& documents,
                       Matrix<T> x);

/// Looks up rows of a tensor rank's part of the table: wte [v,D] holds the tokens from
/// `first_token` on. x [N,D] is wte[token], or zero if another rank has the token. Overwrites x.
template <class T>
void embedding_lookup(const Execution& exec, Vector<const Token> tokens, Matrix<const T> wte,
                      Index first_token, Matrix<T> x);

/// Adds wpe[position] to x [n,D], whose rows are `rows`.
template <class T>
void add_positions(const Execution& exec, Matrix<const T> wpe, const StreamRows& rows,
                   const Documents& documents, Matrix<T> x);

/// Adds wpe[positions[i]] to row i of x [n,D].
template <class T>
void add_positions_at(const Execution& exec, Matrix<const T> wpe, Vector<const Index> positions,
                      Matrix<T> x);

/// Adds to dwte [v,D], which holds the tokens from `first_token` on; dx [N,D], whose rows are
/// `rows`: those of complete sequences, or some of one. Overwrites or adds to dwpe [T,D] as
/// `accumulate` selects; dwpe is empty for models without learned positions. The rows of a position
/// are added in fp32 in the order of the batch.
template <class T>
void embedding_backward(const Execution& exec, const TokenGroups& groups, Matrix<const T> dx,
                        const StreamRows& rows, const Documents& documents, Index first_token,
                        Matrix<T> dwte, Accumulate accumulate, Matrix<T> dwpe);

}  // namespace kzero::kernels
