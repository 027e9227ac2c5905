// The heads of an attention case in double: their operands, the keys that they see, and the weights
// that dropout keeps.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention/attention.hpp"
#include "unit/kernels/cases.hpp"
#include "unit/kernels/document_cases.hpp"

namespace kzero::kernels {

using tests::as_double;
using Doubles = std::vector<double>;

/// [T,d] of one head, widened to double. Rows are `stride` elements apart.
template <class T>
Doubles rows_of(const T* from, Index rows, Index width, Index stride) {
  Doubles out;
  for (Index i = 0; i < rows; ++i) {
    for (Index c = 0; c < width; ++c) out.push_back(as_double(from[i * stride + c]));
  }
  return out;
}

/// A dot product such as q.k, with the sum of its terms' magnitudes.
struct Dot {
  double value = 0, size = 0;

  Dot(const double* a, const double* b, Index n) {
    for (Index c = 0; c < n; ++c) {
      value += a[c] * b[c];
      size += std::abs(a[c] * b[c]);
    }
  }
};

/// The keys that the rows of a case see, and the factor on scores.
struct SeenRows {
  DocumentRows documents{};
  double p = 0;     // of dropout
  float scale = 0;  // of scores; 0: 1 / sqrt(d)

  static constexpr Index first_head = 3;

  Dropout dropout() const { return p > 0 ? make_dropout(p, 9, 6, 40) : Dropout{}; }
  /// `device` has the documents.
  AttentionRows view(const DeviceDocuments& device) const {
    return {device.view(), dropout(), first_head};
  }
};

/// One head of one sequence in double.
struct Head {
  Index length, d;
  double scale;
  Doubles q, k, v;
  std::vector<Index> first_key;  // that each query sees
  Doubles kept;                  // [T,T]: the factors of dropout
  double drop_error = 0;         // relative, of a factor

  /// Head `head` of the query heads of all sequences.
  template <class T>
  Head(const AttentionShape& s, const std::vector<T>& qkv, Index head, const SeenRows& rows = {})
      : length(s.sequence),
        d(s.head_width),
        scale(rows.scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : rows.scale),
        first_key(length),
        kept(length * length, 1) {
    const DocumentRows& documents = rows.documents;
    if (!documents.begin.empty())
      std::copy_n(documents.begin.begin() + head / s.heads * length, length, first_key.begin());
    if (rows.p > 0) drop(rows, head / s.heads, SeenRows::first_head + head % s.heads);
    const Index stride = s.qkv_width(), group = s.heads / s.kv_heads;
    const T* row = &qkv[head / s.heads * length * stride];
    const T* key = row + s.width() + head % s.heads / group * d;
    q = rows_of(row + head % s.heads * d, length, d, stride);
    k = rows_of(key, length, d, stride);
    v = rows_of(key + s.kv_heads * d, length, d, stride);
  }

  /// The weight of query i and key j takes its word from row head * T + i and column j.
  void drop(const SeenRows& rows, Index sequence, Index head) {
    const DropoutRows draws(rows.dropout(), sequence, length);
    for (Index i = 0; i < length; ++i) {
      for (Index j = 0; j <= i; ++j) {
        const auto word = static_cast<double>(draws.word(head * length + i, j));
        kept[i * length + j] = word < std::ldexp(rows.p, 32) ? 0 : 1 / (1 - rows.p);
      }
    }
    drop_error = 2 * u;
  }

  /// d products and sums, and the scale with its own root and division.
  Bounded score(Index i, Index j) const {
    const Dot dot(&q[i * d], &k[j * d], d);
    return {scale * dot.value, gamma(d + 3) * scale * dot.size};
  }
};

}  // namespace kzero::kernels
