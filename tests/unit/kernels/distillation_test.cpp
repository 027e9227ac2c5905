#include "kernels/distillation.hpp"

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

/// Rows of a student's logits and of a teacher's, of which `top` tokens count.
struct DistillationCase {
  Index rows, vocab, top;
  float weight = 0.7F, z_loss = 0, scale = 0.037F;
  bool is_its_own_teacher = false;
  std::vector<float> logits{}, teachers{};
  std::vector<Token> targets{};  // row 2 and so on have none
  std::vector<Token> tokens{};   // [rows, top]
  std::vector<float> ln_p{};

  DistillationCase(Index r, Index v, Index k) : rows(r), vocab(v), top(k) {}

  std::string name() const {
    return std::to_string(rows) + " x " + std::to_string(vocab) + ", top " + std::to_string(top) +
           ", weight " + std::to_string(weight);
  }

  void fill() {
    logits = numbers<float>(rows * vocab, 1, 6);
    teachers = is_its_own_teacher ? logits : numbers<float>(rows * vocab, 2, 6);
    for (Index i = 0; i < rows; ++i) {
      const auto of_row = teachers.begin() + i * vocab;
      double total = 0;
      for (Index v = 0; v < vocab; ++v) total += std::exp(as_double(of_row[v]));
      std::vector<Token> order(static_cast<std::size_t>(vocab));
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](Token a, Token b) { return of_row[a] > of_row[b]; });
      for (Index j = 0; j < top; ++j) {
        tokens.push_back(order[j]);
        ln_p.push_back(static_cast<float>(as_double(of_row[order[j]]) - std::log(total)));
      }
      // Targets among the teacher's tokens and outside, and none.
      const auto target = i % 2 == 0 ? order.front() : order.back();
      targets.push_back(i % 3 == 2 ? no_target : target);
    }
  }
};

struct DistilledRows {
  std::vector<Bounded> loss, kl, gradient;
};

/// The definition over the whole vocabulary, in double. A sum of V exponentials of numbers up to 12
/// below the largest has the relative error `off`, and so has every probability. Differences of
/// logits lose up to 12 u, which `off` covers.
template <class T>
void add_row(const DistillationCase& c, Index i, DistilledRows& rows) {
  if (c.targets[i] < 0) {
    rows.loss.push_back({}), rows.kl.push_back({});
    rows.gradient.insert(rows.gradient.end(), static_cast<std::size_t>(c.vocab), Bounded{});
    return;
  }
  // The exponentials of lanes are rescaled a few times on devices.
  const double off = 8 * exponential_error(12) + gamma(c.vocab + 16) + 24 * u;
  const float* logits = c.logits.data() + i * c.vocab;
  double total = 0;
  for (Index v = 0; v < c.vocab; ++v) total += std::exp(as_double(logits[v]));
  const auto ln_q = [&](Index v) { return as_double(logits[v]) - std::log(total); };
  std::vector<double> p(static_cast<std::size_t>(c.vocab));
  std::vector<bool> is_top(static_cast<std::size_t>(c.vocab));
  double kl = 0, kl_off = 0, p_rest = 1, q_rest = 0;
  for (Index j = i * c.top; j < (i + 1) * c.top; ++j) {
    const auto ln_p = as_double(c.ln_p[j]);
    const Token v = c.tokens[j];
    p[v] = std::exp(ln_p), is_top[v] = true;
    kl += p[v] * (ln_p - ln_q(v));
    kl_off += p[v] * (off + 2 * u * (std::abs(ln_p) + 12));
    p_rest -= p[v];
  }
  for (Index v = 0; v < c.vocab; ++v) q_rest += is_top[v] ? 0 : std::exp(ln_q(v));
  const bool has_rest = c.top < c.vocab;
  if (has_rest) kl += p_rest * (std::log(p_rest) - std::log(q_rest)), kl_off += p_rest * 2 * off;
  const Token target = c.targets[i];
  const double log_z = std::log(total);
  rows.loss.push_back({-ln_q(target), off + 3 * u * (12 + std::abs(ln_q(target)))});
  rows.kl.push_back({kl, kl_off + 4 * u * std::abs(kl)});
  const double weight = as_double(c.weight), scale = as_double(c.scale);
  for (Index v = 0; v < c.vocab; ++v) {
    const double q = std::exp(ln_q(v)), one = v == target ? 1 : 0;
    const double of_teacher = is_top[v] ? p[v] : q * p_rest / q_rest;
    const double more = 2 * as_double(c.z_loss) * log_z;
    const double d = (1 - weight) * (q - one) + weight * (q - of_teacher) + more * q;
    const double size = (1 - weight) * (q + one) + weight * (q + of_teacher) + std::abs(more) * q;
    rows.gradient.push_back(stored<T>(scale * d, scale * size * (2 * off + 8 * u)));
  }
}

/// The kernels as the head of `ranks` tensor ranks runs them.
template <class Kernels, class T>
void expect_distilled(const DistillationCase& c, Index ranks) {
  const std::string what = c.name() + ", " + std::to_string(ranks) + " ranks";
  const Guarded<Token> tokens(c.tokens), targets(c.targets);
  const Guarded<float> ln_p(c.ln_p);
  const TeacherRows teacher{tokens.matrix(c.rows, c.top), ln_p.matrix(c.rows, c.top), c.weight};
  const LossTerms terms{c.scale, c.z_loss};
  const Guarded<float> partials(softmax_parts * ranks * c.rows * partial_softmax_width);
  const auto part = [&](Index number) {
    return Matrix<float>(partials.data() + number * c.rows * partial_softmax_width,
                         static_cast<std::size_t>(c.rows), std::size_t{partial_softmax_width});
  };
  const Guarded<float> divergence(ranks * c.rows * divergence_width);
  struct Rank {
    Index begin, held;
    Guarded<float> logits, kept, factors, losses, kl;
    Guarded<Token> targets;
    Guarded<T> dlogits;
    DistillationRows rows(const DistillationCase& of) const {
      return {kept.matrix(of.rows, of.top), targets.vector(), factors.vector()};
    }
    Rank(const DistillationCase& of, Index first, Index count)
        : begin(first),
          held(count),
          logits(of.rows * count),
          kept(of.rows * of.top),
          factors(of.rows),
          losses(of.rows),
          kl(of.rows),
          targets(of.rows),
          dlogits(of.rows * count) {
      std::vector<float> own;
      for (Index i = 0; i < of.rows; ++i) {
        const auto from = of.logits.begin() + i * of.vocab + begin;
        own.insert(own.end(), from, from + held);
      }
      logits.set(own);
    }
  };
  std::vector<std::unique_ptr<Rank>> all;
  const Execution exec;
  for (Index r = 0; r < ranks; ++r) {
    all.push_back(
        std::make_unique<Rank>(c, part_begin(c.vocab, ranks, r), part_size(c.vocab, ranks, r)));
    const Rank& rank = *all.back();
    const auto logits = tensor::strided_matrix(rank.logits.data(), c.rows, rank.held, rank.held);
    const Matrix<float> parts(divergence.data() + r * c.rows * divergence_width,
                              static_cast<std::size_t>(c.rows), std::size_t{divergence_width});
    take_teachers_logits(exec, teacher, logits, rank.begin, targets.vector(), rank.rows(c),
                         part(softmax_parts * r + 1), parts);
    Kernels::partial_softmax(exec, logits, rank.begin, Vector<const Token>(rank.targets.vector()),
                             part(softmax_parts * r));
  }
  DistilledRows expected;
  for (Index i = 0; i < c.rows; ++i) add_row<T>(c, i, expected);
  for (Index r = 0; r < ranks; ++r) {
    const Rank& rank = *all[r];
    const PartialSoftmaxes softmaxes{
        partials.matrix(softmax_parts * ranks * c.rows, partial_softmax_width),
        softmax_parts * ranks, softmax_parts * r};
    const auto logits = tensor::strided_matrix(rank.logits.data(), c.rows, rank.held, rank.held);
    const auto dlogits = tensor::strided_matrix(rank.dlogits.data(), c.rows, rank.held, rank.held);
    divergences(exec, teacher, softmaxes, divergence.matrix(ranks * c.rows, divergence_width),
                c.top < c.vocab, targets.vector(), terms, rank.rows(c), rank.kl.vector());
    Kernels::template of_partials_with_gradient<T>(exec, softmaxes, SplitLogits{logits, rank.begin},
                                                   Vector<const Token>(rank.targets.vector()),
                                                   terms_of_rest(teacher, terms, rank.rows(c)),
                                                   rank.losses.vector(), dlogits);
    set_teachers_gradient<T>(exec, teacher, softmaxes, rank.begin, rank.held, targets.vector(),
                             terms, rank.rows(c), dlogits);
    expect_close(rank.losses.host(), expected.loss, what + " loss");
    expect_close(rank.kl.host(), expected.kl, what + " kl");
    std::vector<Bounded> own;
    for (Index i = 0; i < c.rows; ++i) {
      const auto from = expected.gradient.begin() + i * c.vocab + rank.begin;
      own.insert(own.end(), from, from + rank.held);
    }
    expect_close(rank.dlogits.host(), own, what + " dlogits");
  }
}

template <class T>
void expect_by_all(const DistillationCase& c) {
  for (const Index ranks : {1, 2, 5}) {
    if (ranks > c.vocab) continue;
    expect_distilled<CrossEntropyRows, T>(c, ranks);
    expect_distilled<CrossEntropyBy<RowByTeam>, T>(c, ranks);
  }
}

template <class T>
class Distillation : public testing::Test {};
TYPED_TEST_SUITE(Distillation, Elements, );

// With top = vocab: the dense KL.
TYPED_TEST(Distillation, LossDivergenceAndGradientMatchThePlainLoop) {
  for (const Index vocab : {2, 7, 61, 300}) {
    for (const Index top : {Index{1}, Index{5}, vocab - 1, vocab}) {
      if (top > vocab) continue;
      DistillationCase c(7, vocab, top);
      c.fill();
      expect_by_all<TypeParam>(c);
    }
  }
}

TYPED_TEST(Distillation, WeightsFromNothingToAllAndTheLossOfZ) {
  for (const float weight : {0.0F, 0.25F, 1.0F}) {
    for (const float z_loss : {0.0F, 0.02F}) {
      DistillationCase c(9, 61, 8);
      c.weight = weight, c.z_loss = z_loss;
      c.fill();
      expect_by_all<TypeParam>(c);
    }
  }
}

// The bounds are absolute, so that they hold what KL and its gradient are up to rounding.
TYPED_TEST(Distillation, AStudentThatIsTheTeacherHasNoDivergence) {
  for (const Index top : {1, 8, 61}) {
    DistillationCase c(9, 61, top);
    c.weight = 1, c.is_its_own_teacher = true;
    c.fill();
    expect_by_all<TypeParam>(c);
  }
}

}  // namespace

}  // namespace kzero::kernels
