#include "kernels/embedding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "unit/kernels/cases.hpp"
#include "unit/kernels/document_cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

struct Batch {
  Index sequences, sequence;
};

// Rows 1, 7, 33 and 65. The position table has more rows than a sequence uses.
constexpr Batch batches[] = {{1, 1}, {1, 7}, {3, 11}, {5, 13}};
constexpr Index table_rows = 101, spare_positions = 2;
constexpr Index many_rows = 151936;  // the tokens of this vocabulary need more than 16 bits

std::vector<Token> draw_tokens(Index rows, Index vocab = table_rows) {
  std::vector<Token> tokens(rows);
  // Few distinct tokens, so that sums have several terms. They include the first and the last of
  // the vocabulary.
  for (Index i = 0; i < rows; ++i) tokens[i] = static_cast<Token>(i * i % 7 * (vocab - 1) / 6);
  tokens.back() = static_cast<Token>(vocab - 1);
  return tokens;
}

template <class F>
void for_each_batch(const F& f) {
  for (const auto [sequences, sequence] : batches) {
    for (const Index width : widths) {
      f(sequences * sequence, sequence, width,
        std::to_string(sequences) + " x " + std::to_string(sequence) + " x " +
            std::to_string(width));
    }
  }
}

template <class T>
class Embedding : public testing::Test {};
TYPED_TEST_SUITE(Embedding, Elements, );

template <class T>
void check_forward(Index rows, Index sequence, Index width, const std::string& name,
                   Index vocab = table_rows, const DocumentRows& rows_of_documents = {}) {
  const auto wte = numbers<T>(vocab * width, 1);
  const auto wpe = numbers<T>((sequence + spare_positions) * width, 2);
  const auto tokens = draw_tokens(rows, vocab);
  const Guarded<T> token_table(wte), position_table(wpe), x(rows * width);
  const Guarded<Token> ids(tokens);
  const DeviceDocuments documents(rows_of_documents);
  const auto positions = position_table.matrix(sequence + spare_positions, width);
  embedding_forward<T>(Execution(), ids.vector(), token_table.matrix(vocab, width), positions,
                       {0, sequence}, documents.view(), x.matrix(rows, width));
  std::vector<Bounded> expected;
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < width; ++j) {
      const Index position = rows_of_documents.position(i, sequence);
      const double sum =
          as_double(wte[tokens[i] * width + j]) + as_double(wpe[position * width + j]);
      expected.push_back(stored<T>(sum, u * std::abs(sum)));
    }
  }
  expect_close(x.host(), expected, name);
}

TYPED_TEST(Embedding, ForwardMatchesThePlainLoop) {
  for_each_batch([](Index rows, Index sequence, Index width, const std::string& name) {
    check_forward<TypeParam>(rows, sequence, width, name);
  });
  check_forward<TypeParam>(33, 11, 3, "a large vocabulary", many_rows);
}

/// Sorts rows by token as TokenGroups requires, and fills the unused tails with traps.
struct Groups {
  std::vector<Index> order, begin;
  std::vector<Token> token;
  Index distinct = 0;

  explicit Groups(const std::vector<Token>& tokens)
      : order(tokens.size()), begin(tokens.size() + 1, -1), token(tokens.size(), -1) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return tokens[a] < tokens[b]; });
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (k == 0 || tokens[order[k]] != tokens[order[k - 1]]) {
        begin[distinct] = static_cast<Index>(k);
        token[distinct++] = tokens[order[k]];
      }
    }
    begin[distinct] = static_cast<Index>(order.size());
  }
};

/// The sum of `before` and the rows selected by `uses`. It has as many roundings as terms.
template <class T, class F>
Bounded sum_of_rows(const std::vector<T>& dx, Index rows, Index width, Index j, double before,
                    const F& uses) {
  double total = before, size = std::abs(before);
  Index terms = 0;
  for (Index i = 0; i < rows; ++i) {
    if (!uses(i)) continue;
    total += as_double(dx[i * width + j]);
    size += std::abs(as_double(dx[i * width + j]));
    ++terms;
  }
  return terms == 0 ? Bounded{before, 0} : stored<T>(total, gamma(terms) * size);
}

template <class T>
void check_backward(Index rows, Index sequence, Index width, Accumulate mode,
                    const std::string& name, Index first_token = 0, Index held = table_rows,
                    Index vocab = table_rows, const DocumentRows& rows_of_documents = {}) {
  const auto dx = numbers<T>(rows * width, 1), dwte = numbers<T>(held * width, 2);
  const auto dwpe = numbers<T>(sequence * width, 3);
  const auto tokens = draw_tokens(rows, vocab);
  const Groups groups(tokens);
  const Guarded<Index> order(groups.order), begin(groups.begin);
  const Guarded<Token> token(groups.token);
  const Guarded<T> gradient(dx), token_gradient(dwte);
  Guarded<T> position_gradient(sequence * width);
  if (mode == Accumulate::yes) position_gradient.set(dwpe);
  const DeviceDocuments documents(rows_of_documents);
  embedding_backward<T>(
      Execution(), {order.vector(), begin.vector(), token.vector(), groups.distinct},
      gradient.matrix(rows, width), {0, sequence}, documents.view(), first_token,
      token_gradient.matrix(held, width), mode, position_gradient.matrix(sequence, width));
  std::vector<Bounded> by_token, by_position;
  for (Index v = 0; v < held; ++v) {
    for (Index j = 0; j < width; ++j) {
      by_token.push_back(sum_of_rows(dx, rows, width, j, as_double(dwte[v * width + j]),
                                     [&](Index i) { return tokens[i] == first_token + v; }));
    }
  }
  for (Index t = 0; t < sequence; ++t) {
    for (Index j = 0; j < width; ++j) {
      const double before = mode == Accumulate::yes ? as_double(dwpe[t * width + j]) : 0;
      by_position.push_back(sum_of_rows(dx, rows, width, j, before, [&](Index i) {
        return rows_of_documents.position(i, sequence) == t;
      }));
    }
  }
  expect_close(token_gradient.host(), by_token, name + " dwte");
  expect_close(position_gradient.host(), by_position, name + " dwpe");
}

TYPED_TEST(Embedding, BackwardMatchesThePlainLoop) {
  for_each_batch([](Index rows, Index sequence, Index width, const std::string& name) {
    check_backward<TypeParam>(rows, sequence, width, Accumulate::no, name);
    check_backward<TypeParam>(rows, sequence, width, Accumulate::yes, name + " added");
    check_backward<TypeParam>(rows, sequence, width, Accumulate::yes, name + " of a part", 17, 40);
  });
  const std::string large = "a large vocabulary";
  check_backward<TypeParam>(33, 11, 3, Accumulate::yes, large, 0, many_rows, many_rows);
  check_backward<TypeParam>(33, 11, 3, Accumulate::yes, large + " of a part", 65537, 70001,
                            many_rows);
}

// The sum over parts of the table is the full lookup. With positions it is the full embedding, bit
// for bit.
template <class T>
void check_lookup(Index rows, Index width, const std::string& name, Index vocab = table_rows) {
  const Index sequence = 5;
  const auto wte = numbers<T>(vocab * width, 1), wpe = numbers<T>(sequence * width, 2);
  const Guarded<Token> ids(draw_tokens(rows, vocab));
  const Guarded<T> table(wte), positions(wpe), expected(rows * width);
  embedding_forward<T>(Execution(), ids.vector(), table.matrix(vocab, width),
                       positions.matrix(sequence, width), {0, sequence}, {},
                       expected.matrix(rows, width));
  std::vector<T> sum(rows * width, T(0.0F));
  const Index second = vocab / 6, third = vocab * 4 / 7;
  for (const auto& [first, held] :
       {std::pair<Index, Index>{0, second}, {second, third - second}, {third, vocab - third}}) {
    const Guarded<T> part(
        std::vector<T>(wte.begin() + first * width, wte.begin() + (first + held) * width));
    const Guarded<T> x(rows * width);
    embedding_lookup<T>(Execution(), ids.vector(), part.matrix(held, width), first,
                        x.matrix(rows, width));
    const auto found = x.host();
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = static_cast<T>(static_cast<float>(sum[i]) + static_cast<float>(found[i]));
  }
  const Index before = rows / 2;  // rows on another rank
  const Guarded<T> x(std::vector<T>(sum.begin() + before * width, sum.end()));
  add_positions<T>(Execution(), positions.matrix(sequence, width), {before, sequence}, {},
                   x.matrix(rows - before, width));
  const auto all = expected.host();
  EXPECT_TRUE(tests::same_bits(x.host(), {all.begin() + before * width, all.end()})) << name;
}

/// Positions added to the rows that begin at the second sequence have embedding_forward's bits.
template <class T>
void check_added_positions(Index rows, Index sequence, Index width,
                           const DocumentRows& rows_of_documents) {
  const std::vector<T> wpe = numbers<T>(sequence * width, 2);
  const Guarded<T> wte(numbers<T>(table_rows * width, 1)), positions(wpe), all(rows * width);
  const Guarded<Token> ids(draw_tokens(rows));
  const DeviceDocuments documents(rows_of_documents);
  embedding_forward<T>(Execution(), ids.vector(), wte.matrix(table_rows, width),
                       positions.matrix(sequence, width), {0, sequence}, documents.view(),
                       all.matrix(rows, width));
  const Index before = rows / 3, after = rows - before;
  const Guarded<T> x(after * width);
  const Vector<const Token> later(ids.data() + before, static_cast<std::size_t>(after));
  embedding_lookup<T>(Execution(), later, wte.matrix(table_rows, width), 0, x.matrix(after, width));
  add_positions<T>(Execution(), positions.matrix(sequence, width), {before, sequence},
                   documents.view(), x.matrix(after, width));
  const std::vector<T> expected = all.host();
  EXPECT_TRUE(tests::same_bits(x.host(), {expected.begin() + before * width, expected.end()}));
}

TYPED_TEST(Embedding, LookupInPartsAndPositionsAreTheWhole) {
  for_each_shape([](Index rows, Index width, const std::string& name) {
    check_lookup<TypeParam>(rows, width, name);
  });
  check_lookup<TypeParam>(33, 3, "a large vocabulary", many_rows);
}

TYPED_TEST(Embedding, PositionsRestartInDocuments) {
  for (const Index sequence : {1, 13, 70}) {
    for (const Index width : {1, 33, 64, 257}) {
      for (const DocumentRows& documents : document_cases(3, sequence)) {
        const std::string name = std::to_string(sequence) + " x " + std::to_string(width);
        const Index rows = 3 * sequence;
        check_forward<TypeParam>(rows, sequence, width, name, table_rows, documents);
        for (const Accumulate mode : {Accumulate::no, Accumulate::yes}) {
          check_backward<TypeParam>(rows, sequence, width, mode, name, 0, table_rows, table_rows,
                                    documents);
        }
        check_added_positions<TypeParam>(rows, sequence, width, documents);
      }
    }
  }
}

/// Rows of a sequence that are added part by part give the bits of all rows at once.
TEST(EmbeddingParts, PositionsAreThoseOfTheSequence) {
  const Index sequence = 70, width = 33;
  const auto dx = numbers<float>(sequence * width, 1);
  const Guarded<float> gradient(dx);
  std::vector<DocumentRows> cases = document_cases(1, sequence);
  cases.emplace_back();
  for (const DocumentRows& of_rows : cases) {
    const DeviceDocuments documents(of_rows);
    const auto add = [&](Index first, Index count, Accumulate mode, const Guarded<float>& sum) {
      const Matrix<const float> rows(gradient.data() + first * width,
                                     static_cast<std::size_t>(count),
                                     static_cast<std::size_t>(width));
      embedding_backward<float>(Execution(), {}, rows, {first, sequence}, documents.view(), 0,
                                Matrix<float>(), mode, sum.matrix(sequence, width));
      Kokkos::fence("kzero::tests::added");
    };
    const Guarded<float> whole(sequence * width), parts(sequence * width);
    add(0, sequence, Accumulate::no, whole);
    Index first = 0;
    for (const Index count : {14, 14, 35, 7}) {
      add(first, count, first == 0 ? Accumulate::no : Accumulate::yes, parts);
      first += count;
    }
    EXPECT_TRUE(tests::same_bits(parts.host(), whole.host()));
  }
}

TYPED_TEST(Embedding, PositionsOfRowsAreAdded) {
  const std::vector<Index> positions{4, 0, 2, 2};
  for (const Index width : widths) {
    const auto wpe = numbers<TypeParam>(5 * width, 1), before = numbers<TypeParam>(4 * width, 2);
    const Guarded<TypeParam> table(wpe), x(before);
    const Guarded<Index> at(positions);
    add_positions_at<TypeParam>(Execution(), table.matrix(5, width), at.vector(),
                                x.matrix(4, width));
    std::vector<Bounded> expected;
    for (Index i = 0; i < 4; ++i) {
      for (Index j = 0; j < width; ++j) {
        const double sum =
            as_double(before[i * width + j]) + as_double(wpe[positions[i] * width + j]);
        expected.push_back(stored<TypeParam>(sum, u * std::abs(sum)));
      }
    }
    expect_close(x.host(), expected, "width " + std::to_string(width));
  }
}

}  // namespace

}  // namespace kzero::kernels
