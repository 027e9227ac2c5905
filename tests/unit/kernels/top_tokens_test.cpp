#include "kernels/top_tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

struct FoundTokens {
  std::vector<Token> tokens;
  std::vector<float> ln_p;
};

/// The kernels as the head of `ranks` tensor ranks runs them.
template <class Kernels>
FoundTokens top_of(const std::vector<float>& logits, Index vocab, const std::vector<Token>& of_rows,
                   Index top, Index ranks) {
  const auto rows = std::ssize(of_rows);
  const Guarded<Token> targets(of_rows), tokens(rows * top), candidate_tokens(ranks * rows * top);
  const Guarded<float> ln_p(rows * top), candidates(ranks * rows * top),
      partials(ranks * rows * partial_softmax_width);
  for (Index r = 0; r < ranks; ++r) {
    const Index begin = part_begin(vocab, ranks, r), held = part_size(vocab, ranks, r);
    std::vector<float> values;
    for (Index i = 0; i < rows; ++i) {
      const auto from = logits.begin() + i * vocab + begin;
      values.insert(values.end(), from, from + held);
    }
    const Guarded<float> own(values);
    const auto view = tensor::strided_matrix(own.data(), rows, held, held);
    const auto part = [&](auto* data, Index columns) {
      return Matrix<std::remove_pointer_t<decltype(data)>>(data + r * rows * columns,
                                                           static_cast<std::size_t>(rows),
                                                           static_cast<std::size_t>(columns));
    };
    find_candidates(Execution(), view, begin, targets.vector(),
                    {part(candidate_tokens.data(), top), part(candidates.data(), top)});
    Kernels::partial_softmax(Execution(), view, begin, Vector<const Token>(targets.vector()),
                             part(partials.data(), partial_softmax_width));
  }
  merge_candidates(
      Execution(),
      {candidate_tokens.matrix(ranks * rows, top), candidates.matrix(ranks * rows, top)},
      {partials.matrix(ranks * rows, partial_softmax_width), ranks, 0}, targets.vector(),
      {tokens.matrix(rows, top), ln_p.matrix(rows, top)});
  return {tokens.host(), ln_p.host()};
}

template <class Kernels>
void expect_top(const std::vector<float>& logits, Index vocab, Index top, const std::string& what) {
  const Index rows = std::ssize(logits) / vocab;
  std::vector<Token> targets;
  for (Index i = 0; i < rows; ++i) targets.push_back(i % 4 == 3 ? no_target : 0);
  std::vector<Token> tokens;
  std::vector<Bounded> ln_p;
  for (Index i = 0; i < rows; ++i) {
    const auto of_row = logits.begin() + i * vocab;
    double total = 0;
    for (Index v = 0; v < vocab; ++v) total += std::exp(as_double(of_row[v]));
    std::vector<Token> order(static_cast<std::size_t>(vocab));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](Token a, Token b) { return of_row[a] > of_row[b]; });
    for (Index j = 0; j < top; ++j) {
      const double value = as_double(of_row[order[j]]) - std::log(total);
      const double off = 8 * exponential_error(12) + gamma(vocab + 16) + 12 * u;
      tokens.push_back(targets[i] < 0 ? 0 : order[j]);
      ln_p.push_back(targets[i] < 0 ? Bounded{} : Bounded{value, off + u * std::abs(value)});
    }
  }
  for (const Index ranks : {1, 2, 3, 7}) {
    if (ranks > vocab) continue;
    const FoundTokens found = top_of<Kernels>(logits, vocab, targets, top, ranks);
    EXPECT_EQ(found.tokens, tokens) << what << ", " << ranks << " ranks";
    expect_close(found.ln_p, ln_p, what + ", " + std::to_string(ranks) + " ranks");
    for (const float one : found.ln_p) EXPECT_LE(one, 0);
  }
}

template <class Kernels>
void expect_tops() {
  for (const Index vocab : {1, 7, 61, 300}) {
    for (const Index top : {Index{1}, Index{6}, vocab}) {
      if (top > vocab) continue;
      const std::string what = std::to_string(vocab) + " columns, top " + std::to_string(top);
      expect_top<Kernels>(numbers<float>(9 * vocab, 3, 6), vocab, top, what);
      // Equal logits, within a rank and beyond.
      auto few = numbers<float>(9 * vocab, 4, 3);
      for (float& logit : few) logit = std::round(logit);
      expect_top<Kernels>(few, vocab, top, what + ", equal logits");
    }
  }
}

TEST(TopTokens, AreTheMostProbableOfARowAndThoseWithLowerNumbersFirst) {
  expect_tops<CrossEntropyRows>();
  expect_tops<CrossEntropyBy<RowByTeam>>();
}

TEST(TopTokens, OfOneTokenAreCertain) {
  const FoundTokens found = top_of<CrossEntropyRows>({2.5F}, 1, {0}, 1, 1);
  EXPECT_EQ(found.ln_p, std::vector<float>{0.0F});
}

}  // namespace

}  // namespace kzero::kernels
