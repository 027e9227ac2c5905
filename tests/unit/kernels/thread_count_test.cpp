// Sums have a fixed order, so the bits of a kernel must not depend on the number of threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/adamw.hpp"
#include "kernels/all_heads_norm.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/embedding.hpp"
#include "kernels/gated.hpp"
#include "kernels/gelu.hpp"
#include "kernels/initialize.hpp"
#include "kernels/norm.hpp"
#include "kernels/reduction.hpp"
#include "kernels/rotary.hpp"
#include "kernels/row_sums.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "kernels/xielu.hpp"
#include "support/threads.hpp"
#include "unit/kernels/cases.hpp"

#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

namespace kzero::kernels {

namespace {

constexpr Index row_count = 65, width = 257;

std::vector<float> joined(std::initializer_list<const Guarded<float>*> parts) {
  std::vector<float> all;
  for (const auto* part : parts) {
    for (const float value : part->host()) all.push_back(value);
  }
  return all;
}

/// compute(exec) returns all results of a kernel.
template <class F>
void expect_same_bits(const F& compute) {
  const auto execs = tests::thread_counts();
  const std::vector<float> first = compute(execs.front());
  ASSERT_FALSE(first.empty());
  for (std::size_t i = 1; i < execs.size(); ++i) {
    EXPECT_TRUE(tests::same_bits(compute(execs[i]), first)) << "instance " << i;
  }
}

#if defined(KOKKOS_ENABLE_OPENMP) && !defined(__SANITIZE_THREAD__)
TEST(ThreadCount, TestsDifferInIt) {
  const auto execs = tests::thread_counts<Kokkos::OpenMP>();
  ASSERT_EQ(execs.size(), 3U);
  for (int threads = 1; threads <= 3; ++threads) {
    std::vector<int> seen(300);
    Kokkos::parallel_for("kzero::tests::see_thread",
                         Kokkos::RangePolicy<Kokkos::OpenMP>(execs[threads - 1], 0, 300),
                         [&](Index i) { seen[i] = omp_get_thread_num(); });
    EXPECT_EQ(*std::max_element(seen.begin(), seen.end()), threads - 1);
  }
}
#endif

TEST(ThreadCount, LayernormDoesNotDependOnIt) {
  const Guarded<float> x(numbers<float>(row_count * width, 1)), w(numbers<float>(width, 2));
  const Guarded<float> dy(numbers<float>(row_count * width, 3));
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> y(row_count * width), mean(row_count), rstd(row_count),
        dx(row_count * width), dw(width), db(width);
    const Guarded<float> partial(row_groups * 2 * width);
    layernorm_forward<float>(exec, x.matrix(row_count, width), w.vector(), w.vector(), 1e-5F,
                             y.matrix(row_count, width), mean.vector(), rstd.vector());
    layernorm_backward<float>(
        exec, {x.matrix(row_count, width), w.vector(), mean.vector(), rstd.vector()},
        dy.matrix(row_count, width),
        {dx.matrix(row_count, width), Accumulate::no, dw.vector(), db.vector(), Accumulate::no},
        partial.matrix(row_groups, 2 * width));
    return joined({&y, &mean, &rstd, &dx, &dw, &db});
  });
}

TEST(ThreadCount, RmsnormDoesNotDependOnIt) {
  const Guarded<float> x(numbers<float>(row_count * width, 1)), w(numbers<float>(width, 2));
  const Guarded<float> dy(numbers<float>(row_count * width, 3));
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> y(row_count * width), rstd(row_count), dx(row_count * width), dw(width);
    const Guarded<float> partial(row_groups * width);
    rmsnorm_forward<float>(exec, x.matrix(row_count, width), w.vector(), 1e-5F,
                           y.matrix(row_count, width), rstd.vector());
    rmsnorm_backward<float>(
        exec, {x.matrix(row_count, width), w.vector(), rstd.vector()}, dy.matrix(row_count, width),
        {dx.matrix(row_count, width), Accumulate::no, dw.vector(), Accumulate::no},
        partial.matrix(row_groups, width));
    return joined({&y, &rstd, &dx, &dw});
  });
}

TEST(ThreadCount, GeluDoesNotDependOnIt) {
  const Guarded<float> h(numbers<float>(row_count * width, 1, 4));
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> g(row_count * width), d(numbers<float>(row_count * width, 2));
    gelu_forward<float>(exec, h.matrix(row_count, width), g.matrix(row_count, width));
    gelu_backward<float>(exec, h.matrix(row_count, width), d.matrix(row_count, width));
    return joined({&g, &d});
  });
}

TEST(ThreadCount, GatedActivationsDoNotDependOnIt) {
  const Guarded<float> x(numbers<float>(row_count * 2 * width, 1, 4));
  const auto gate_up = x.matrix(row_count, 2 * width);
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> y(row_count * width), d(numbers<float>(row_count * 2 * width, 2)),
        z(row_count * width), e(numbers<float>(row_count * 2 * width, 3));
    swiglu_forward<float>(exec, gate_up, y.matrix(row_count, width));
    swiglu_backward<float>(exec, gate_up, d.matrix(row_count, 2 * width));
    geglu_forward<float>(exec, gate_up, z.matrix(row_count, width));
    geglu_backward<float>(exec, gate_up, e.matrix(row_count, 2 * width));
    return joined({&y, &d, &z, &e});
  });
}

TEST(ThreadCount, XieluDoesNotDependOnIt) {
  const Guarded<float> u(numbers<float>(row_count * width, 1, 4)),
      alphas(std::vector<float>{0.2F, -1});
  const auto in = u.matrix(row_count, width);
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> y(row_count * width), d(numbers<float>(row_count * width, 2)), sums(2),
        partial(row_groups * 2);
    xielu_forward<float>(exec, in, alphas.vector(), y.matrix(row_count, width));
    xielu_backward<float>(exec, in, alphas.vector(), d.matrix(row_count, width), {sums.vector()},
                          partial.matrix(row_groups, 2));
    return joined({&y, &d, &sums});
  });
}

TEST(ThreadCount, AllHeadsNormDoesNotDependOnIt) {
  const AllHeadsShape shape{200, 57, 200, 57, 1e-5F};
  const Guarded<float> qkv(numbers<float>(row_count * width, 1)), w(numbers<float>(width, 2));
  const auto x = qkv.matrix(row_count, width);
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> squares(row_count * 2), dots(row_count * 2), y(row_count * width),
        d(numbers<float>(row_count * width, 3)), dw(width), partial(row_groups * width);
    const auto squares_of = squares.matrix(row_count, 2), dots_of = dots.matrix(row_count, 2);
    const auto dy = d.matrix(row_count, width);
    row_squares<float>(exec, shape, x, squares_of);
    all_heads_norm_forward<float>(exec, shape, w.vector(), x, squares_of,
                                  y.matrix(row_count, width));
    row_dots<float>(exec, shape, w.vector(), x, dy, dots_of);
    all_heads_norm_backward<float>(exec, shape, w.vector(), x, squares_of, dots_of, dy, dw.vector(),
                                   Accumulate::no, partial.matrix(row_groups, width));
    return joined({&squares, &y, &dots, &d, &dw});
  });
}

TEST(ThreadCount, RotaryDoesNotDependOnIt) {
  const RotaryShape shape{.sequence = 13, .heads = 6, .kv_heads = 2, .head_width = 20};
  const Index columns = shape.rotated_width() + 40;
  const Guarded<float> qkv(numbers<float>(row_count * columns, 1)), weight(numbers<float>(20, 2)),
      table(numbers<float>(13 * 20, 3));
  const auto in = qkv.matrix(row_count, columns), angles = table.matrix(13, 20);
  const HeadNorms<float> norms{weight.vector(), weight.vector(), 1e-6F};
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> y(numbers<float>(row_count * columns, 4)),
        d(numbers<float>(row_count * columns, 5)), dq(20), dk(20), partial(row_groups * 40);
    const auto dqkv = d.matrix(row_count, columns);
    rotary_forward<float>(exec, shape, {}, angles, norms, in, y.matrix(row_count, columns));
    rotary_backward<float>(exec, shape, {}, angles, norms, in, dqkv,
                           {dq.vector(), dk.vector(), Accumulate::no},
                           partial.matrix(row_groups, 40));
    return joined({&y, &d, &dq, &dk});
  });
}

TEST(ThreadCount, SumsDoNotDependOnIt) {
  const Index count = 40000 + 17;
  const Guarded<float> x(numbers<float>(row_count * width, 1)), y(numbers<float>(count, 2));
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> out(width), partial(row_groups * width);
    sum_rows<float>(exec, x.matrix(row_count, width), Accumulate::no, out.vector(),
                    partial.matrix(row_groups, width));
    auto all = joined({&out});
    const Guarded<ExactSum> sum(1);
    sum_of_squares<float>(exec, y.vector(), 0, sum.data());
    const double squares = sum.host()[0].value();
    const float high = static_cast<float>(squares);
    all.push_back(high);
    all.push_back(static_cast<float>(squares - static_cast<double>(high)));
    return all;
  });
}

TEST(ThreadCount, CrossEntropyDoesNotDependOnIt) {
  const std::vector<Token> targets(row_count, 3);
  const Guarded<Token> ids(targets);
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> logits(numbers<float>(row_count * 1000, 1, 9)), losses(row_count),
        d(row_count * 1000);
    CrossEntropyRows::with_gradient<float>(exec, logits.matrix(row_count, 1000), ids.vector(),
                                           {0.1F, 0.01F}, losses.vector(),
                                           d.matrix(row_count, 1000));
    return joined({&losses, &d});
  });
}

TEST(ThreadCount, CrossEntropyOfDevicesDoesNotDependOnIt) {
  const Guarded<Token> ids(std::vector<Token>(row_count, 3));
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> logits(numbers<float>(row_count * 1000, 1, 9)), losses(row_count),
        d(row_count * 1000);
    CrossEntropyBy<RowByTeam>::with_gradient<float>(exec, logits.matrix(row_count, 1000),
                                                    ids.vector(), {0.1F, 0.01F}, losses.vector(),
                                                    d.matrix(row_count, 1000));
    return joined({&losses, &d});
  });
}

TEST(ThreadCount, EmbeddingDoesNotDependOnIt) {
  const Index sequence = 13;
  std::vector<Index> order, begin{0, 20, row_count};  // two tokens with 20 and 45 rows
  for (Index i = 0; i < row_count; ++i) order.push_back(i);
  const Guarded<Index> orders(order), begins(begin);
  const Guarded<Token> tokens(std::vector<Token>{0, 4});
  const Guarded<float> dx(numbers<float>(row_count * width, 1));
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> dwte(std::vector<float>(5 * width)), dwpe(sequence * width);
    embedding_backward<float>(exec, {orders.vector(), begins.vector(), tokens.vector(), 2},
                              dx.matrix(row_count, width), {0, sequence}, {}, 0,
                              dwte.matrix(5, width), Accumulate::no, dwpe.matrix(sequence, width));
    return joined({&dwte, &dwpe});
  });
}

TEST(ThreadCount, AdamWAndFirstValuesDoNotDependOnIt) {
  const Index count = 3 * 4096 + 5;
  const Guarded<float> g(numbers<float>(count, 1));
  const AdamWStep step{.lr = 0.01F,
                       .beta1 = 0.9F,
                       .beta2 = 0.95F,
                       .one_minus_beta1 = 0.1F,
                       .one_minus_beta2 = 0.05F,
                       .eps = 1e-8F,
                       .decay = 0.1F};
  expect_same_bits([&](const Execution& exec) {
    const Guarded<float> w(count), m(numbers<float>(count, 2)), v(std::vector<float>(count, 0.5F));
    draw_normal(exec, 1, 2, {5, 300, 3, 70}, 0.02F, w.vector());
    update_elements<float>(exec, step, {g.data(), w.data(), m.data(), v.data(), w.data()}, count);
    return joined({&w, &m, &v});
  });
}

TEST(ThreadCount, AttentionDoesNotDependOnItNorOnTheSlots) {
  const AttentionShape s{.batch = 2, .sequence = 129, .heads = 6, .kv_heads = 3, .head_width = 16};
  const Index n = s.batch * s.sequence, heads = s.batch * s.heads;
  const Guarded<float> qkv(numbers<float>(n * s.qkv_width(), 1, 2)),
      dout(numbers<float>(n * s.width(), 2));
  const auto in = qkv.matrix(n, s.qkv_width());
  const auto g = dout.matrix(n, s.width());
  std::vector<float> first;
  for (const Index slots : {1, 2, 3}) {
    for (const Execution& exec : tests::thread_counts()) {
      const Guarded<float> out(n * s.width()), logs(heads * s.sequence), d(n * s.qkv_width());
      const auto attention = Own::make<float>(problem_of<float>(s));
      const Guarded<float> scratch(attention->scratch_bytes(slots) / 4);
      attention->start(scratch.vector());
      const auto o = out.matrix(n, s.width()), l = logs.matrix(heads, s.sequence);
      attention->forward(exec, operands_in<const float>(in, s), {}, o, l);
      attention->backward(exec, operands_in<const float>(in, s), {}, o, l, g,
                          operands_in(d.matrix(n, s.qkv_width()), s));
      const auto all = joined({&out, &logs, &d});
      if (first.empty()) first = all;
      EXPECT_TRUE(tests::same_bits(all, first)) << slots << " slots";
    }
  }
}

}  // namespace

}  // namespace kzero::kernels
