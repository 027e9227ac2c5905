// Sequences that hold several documents, for the kernel tests.
#pragma once

#include <numeric>
#include <vector>

#include "kernels/documents.hpp"
#include "support/guarded.hpp"

namespace kzero::kernels {

/// The documents of a batch's rows on the host: kernels::Documents as vectors.
struct DocumentRows {
  std::vector<std::int32_t> begin, end;

  DocumentRows() = default;
  /// Every sequence begins with documents of these lengths, as far as it has room for them. The
  /// rest is padding: documents of one token.
  DocumentRows(Index sequences, Index sequence, const std::vector<Index>& lengths) {
    for (Index n = 0; n < sequences; ++n) {
      // Other sequences begin with other documents.
      Index at = 0;
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        const Index length = lengths[(i + n) % lengths.size()];
        if (at + length > sequence) break;
        add(at, length);
        at += length;
      }
      for (; at < sequence; ++at) add(at, 1);
    }
  }

  /// What the rows see in a window, one row after another: see window_of.
  DocumentRows in_window(Index window, Index sequence) const {
    DocumentRows seen = *this;
    for (std::size_t i = 0; i < begin.size(); ++i) {
      const auto row = static_cast<Index>(i) % sequence;
      while (seen.begin[i] < row - window + 1) ++seen.begin[i];
      while (seen.end[i] > row + window) --seen.end[i];
    }
    return seen;
  }

  /// The position of a row in its document.
  Index position(Index row, Index sequence) const {
    return row % sequence - (begin.empty() ? 0 : begin[row]);
  }

 private:
  void add(Index first, Index length) {
    begin.insert(begin.end(), length, static_cast<std::int32_t>(first));
    end.insert(end.end(), length, static_cast<std::int32_t>(first + length));
  }
};

/// The same in device memory.
class DeviceDocuments {
 public:
  explicit DeviceDocuments(const DocumentRows& rows) : begin_(rows.begin), end_(rows.end) {}

  Documents view() const {
    if (begin_.vector().size() == 0) return {};
    return {begin_.vector(), end_.vector()};
  }

 private:
  tests::Guarded<std::int32_t> begin_, end_;
};

/// One document as long as the sequence; one-token documents; short and long ones, with and without
/// padding.
inline std::vector<DocumentRows> document_cases(Index sequences, Index sequence) {
  const std::vector<std::vector<Index>> lengths{
      {sequence}, {}, {5, 1, 17, 64, 2, 31, 90, 3, 1, 1, 40}, {sequence - 1, 1}, {70, 33, 129}};
  std::vector<DocumentRows> cases;
  for (const std::vector<Index>& of_case : lengths)
    cases.emplace_back(sequences, sequence, of_case);
  return cases;
}

/// Windows of one token to two tiles, in one document and in several.
inline std::vector<DocumentRows> window_cases(Index sequences, Index sequence) {
  std::vector<DocumentRows> cases;
  for (const Index window : {1, 30, 64, 97}) {
    for (const std::vector<Index>& lengths : {std::vector{sequence}, {70, 33, 129}})
      cases.push_back(DocumentRows(sequences, sequence, lengths).in_window(window, sequence));
  }
  return cases;
}

}  // namespace kzero::kernels
