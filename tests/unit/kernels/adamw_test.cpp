#include "kernels/adamw.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

constexpr int steps = 20;

AdamWStep step_at(int t) {
  return {.lr = 1e-2F / static_cast<float>(t),
          .beta1 = 0.9F,
          .beta2 = 0.95F,
          .one_minus_beta1 = 0.1F,
          .one_minus_beta2 = 0.05F,
          .eps = 1e-8F,
          .decay = 0.1F,
          .correction1 = 1 - std::pow(0.9F, static_cast<float>(t)),
          .correction2 = 1 - std::pow(0.95F, static_cast<float>(t)),
          .gradient_scale = 0.7F};
}

/// One element in double, with the fp32 error of each step, which carries over to the next step.
struct Element {
  Bounded w, m, v;

  void update(const AdamWStep& s, double gradient) {
    const double g = as_double(s.gradient_scale) * gradient;
    const double b1 = as_double(s.beta1), b2 = as_double(s.beta2);
    const double m_new = as_double(s.one_minus_beta1) * g,
                 v_new = as_double(s.one_minus_beta2) * g * g;
    m.error = b1 * m.error + gamma(3) * (std::abs(b1 * m.value) + b1 * m.error + std::abs(m_new));
    m.value = b1 * m.value + m_new;
    v.error = b2 * v.error + gamma(5) * (b2 * v.value + b2 * v.error + v_new);
    v.value = b2 * v.value + v_new;
    const double lr = as_double(s.lr), decayed = w.value * (1 - lr * as_double(s.decay));
    const double root = std::sqrt(v.value / as_double(s.correction2));
    const double below = root + as_double(s.eps), factor = lr / as_double(s.correction1) / below;
    // The root halves the relative error of v. There are 7 roundings from the moments to the step.
    const double root_error = v.value > 0 ? root * 0.5 * v.error / (v.value - v.error) : 0;
    const double step = factor * m.value;
    const double step_error = factor * m.error + std::abs(step) * root_error / below +
                              gamma(8) * (std::abs(step) + factor * m.error);
    w.error += step_error + gamma(4) * (std::abs(w.value) + w.error + std::abs(step));
    w.value = decayed - step;
  }
};

template <class T>
class AdamW : public testing::Test {};
TYPED_TEST_SUITE(AdamW, Elements, );

TYPED_TEST(AdamW, FollowsThePlainLoopForTwentySteps) {
  using T = TypeParam;
  for (const Index count : {1, 31, 257, 4096, 4099}) {
    const auto w = numbers<float>(count, 1);
    const std::vector<float> zeros(count);
    const Guarded<float> master(w), first(zeros), second(zeros);
    const Guarded<T> parameters(count);
    std::vector<Element> elements(count);
    for (Index i = 0; i < count; ++i) elements[i].w.value = as_double(w[i]);
    for (int t = 1; t <= steps; ++t) {
      auto g = numbers<T>(count, 100 + t);
      g.back() = T(0.0F);  // an element without any gradient only decays
      const Guarded<T> gradient(g);
      update_elements<T>(
          Execution(), step_at(t),
          {gradient.data(), master.data(), first.data(), second.data(), parameters.data()}, count);
      for (Index i = 0; i < count; ++i) elements[i].update(step_at(t), as_double(g[i]));
    }
    std::vector<Bounded> ws, ms, vs;
    for (const Element& e : elements) {
      ws.push_back(e.w);
      ms.push_back(e.m);
      vs.push_back(e.v);
    }
    const std::string name = std::to_string(count);
    expect_close(master.host(), ws, name + " master");
    expect_close(first.host(), ms, name + " first moment");
    expect_close(second.host(), vs, name + " second moment");
    const auto masters = master.host();
    const auto rounded = parameters.host();
    for (Index i = 0; i < count; ++i) EXPECT_EQ(as_double(rounded[i]), as_double(T(masters[i])));
  }
}

TEST(AdamWInPlace, ParametersOfAnFp32RunAreTheMasterWeights) {
  const auto w = numbers<float>(1000, 1), g = numbers<float>(1000, 2);
  const std::vector<float> zeros(1000);
  const Guarded<float> gradient(g), apart(w), together(w), out(1000);
  const Guarded<float> m1(zeros), v1(zeros), m2(zeros), v2(zeros);
  update_elements<float>(Execution(), step_at(1),
                         {gradient.data(), apart.data(), m1.data(), v1.data(), out.data()}, 1000);
  update_elements<float>(Execution(), step_at(1),
                         {gradient.data(), together.data(), m2.data(), v2.data(), together.data()},
                         1000);
  EXPECT_TRUE(tests::same_bits(together.host(), apart.host()));
  EXPECT_TRUE(tests::same_bits(out.host(), apart.host()));
}

// Within rounding on device builds, bit for bit if the host is the device.
TYPED_TEST(AdamW, OnTheHostIsTheSameUpdate) {
  using T = TypeParam;
  for (const Index count : {1, 31, 4096, 10007}) {
    const auto w = numbers<float>(count, 1), m = numbers<float>(count, 2, 0.1);
    const std::vector<float> v(count, 0.01F);
    auto g = numbers<T>(count, 3);
    const Guarded<float> master(w), first(m), second(v);
    const Guarded<T> gradient(g), parameters(count);
    std::vector<float> host_w = w, host_m = m, host_v = v;
    std::vector<T> host_p(count);
    update_elements<T>(
        Execution(), step_at(3),
        {gradient.data(), master.data(), first.data(), second.data(), parameters.data()}, count);
    update_elements<T>(HostCores(), step_at(3),
                       {g.data(), host_w.data(), host_m.data(), host_v.data(), host_p.data()},
                       count);
    const auto device_w = master.host();
    for (Index i = 0; i < count; ++i) {
      EXPECT_NEAR(host_w[i], device_w[i], 2 * gamma(12) * (std::abs(w[i]) + 1));
      EXPECT_EQ(as_double(host_p[i]), as_double(T(host_w[i])));
    }
    if constexpr (tensor::on_host) {
      EXPECT_TRUE(tests::same_bits(host_w, device_w));
      EXPECT_TRUE(tests::same_bits(host_m, first.host()));
      EXPECT_TRUE(tests::same_bits(host_v, second.host()));
    }
  }
}

// A compiler that chooses the fused products itself may choose others in its next version, or where
// it does not vectorize.
TEST(AdamWOnTheHost, FusesTheProductsThatAreNamed) {
  constexpr Index count = 1003;
  const AdamWStep s = step_at(3);
  const auto w = numbers<float>(count, 1), m = numbers<float>(count, 2, 0.1);
  const auto g = numbers<float>(count, 3);
  const std::vector<float> v(count, 0.01F);
  std::vector<float> new_w = w, new_m = m, new_v = v;
  update_elements<float>(HostCores(), s,
                         {g.data(), new_w.data(), new_m.data(), new_v.data(), new_w.data()}, count);
  for (Index i = 0; i < count; ++i) {
    const float scaled = g[i] * s.gradient_scale;
    const float m_now = std::fma(s.beta1, m[i], s.one_minus_beta1 * scaled);
    const float v_now = std::fma(s.beta2, v[i], s.one_minus_beta2 * scaled * scaled);
    const float step = s.lr * (m_now / s.correction1) / (std::sqrt(v_now / s.correction2) + s.eps);
    EXPECT_EQ(new_m[i], m_now) << i;
    EXPECT_EQ(new_v[i], v_now) << i;
    EXPECT_EQ(new_w[i], std::fma(w[i], std::fma(-s.lr, s.decay, 1.0F), -step)) << i;
  }
}

/// Updates parts of arrays in device or host memory by one batch, and one by one.
template <class T, class Where>
void check_batch(const Where& where, const AdamWArrays<T>& together, const AdamWArrays<T>& alone,
                 const std::vector<Index>& counts) {
  UpdateBatch<T, AdamWStep, Where> batch(where);
  Index begin = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const AdamWStep step = step_at(static_cast<int>(i) + 1);
    batch.add({step, together + begin, counts[i]});
    update_elements<T>(where, step, alone + begin, counts[i]);
    begin += counts[i] + 1;  // the element between two parts keeps its value
  }
  batch.run();
}

/// More parts than a launch takes; some of no element, of one block, and of several.
std::vector<Index> part_counts() {
  std::vector<Index> counts{0, 1, element_block, element_block + 1, 3 * element_block - 1, 0};
  for (Index i = 0; i < 30; ++i) counts.push_back(i * 37 % 101);
  return counts;
}

TYPED_TEST(AdamW, OfSeveralPartsIsTheUpdateOfEach) {
  using T = TypeParam;
  const std::vector<Index> counts = part_counts();
  Index size = 0;
  for (const Index count : counts) size += count + 1;
  const auto w = numbers<float>(size, 1), m = numbers<float>(size, 2, 0.1);
  const std::vector<float> v(size, 0.01F);
  const auto g = numbers<T>(size, 3), p = numbers<T>(size, 4);
  const Guarded<T> gradient(g), rounded(p), expected_rounded(p);
  const Guarded<float> found[] = {Guarded(w), Guarded(m), Guarded(v)};
  const Guarded<float> expected[] = {Guarded(w), Guarded(m), Guarded(v)};
  const auto at = [&](const Guarded<float>(&state)[3], const Guarded<T>& parameters) {
    return AdamWArrays<T>{gradient.data(), state[0].data(), state[1].data(), state[2].data(),
                          parameters.data()};
  };
  check_batch<T>(Execution(), at(found, rounded), at(expected, expected_rounded), counts);
  for (int array = 0; array < 3; ++array)
    EXPECT_TRUE(tests::same_bits(found[array].host(), expected[array].host())) << array;
  EXPECT_TRUE(tests::same_bits(rounded.host(), expected_rounded.host()));
  EXPECT_FALSE(tests::same_bits(rounded.host(), p));

  std::vector<float> own[] = {w, m, v}, each[] = {w, m, v};
  std::vector<T> own_p = p, each_p = p;
  check_batch<T>(HostCores(), {g.data(), own[0].data(), own[1].data(), own[2].data(), own_p.data()},
                 {g.data(), each[0].data(), each[1].data(), each[2].data(), each_p.data()}, counts);
  for (int array = 0; array < 3; ++array)
    EXPECT_TRUE(tests::same_bits(own[array], each[array])) << array;
  EXPECT_TRUE(tests::same_bits(own_p, each_p));
}

template <class T>
void update_by_packs(const AdamWArrays<T>& arrays, Index count) {
  const AdamWStep step = step_at(3);
  Kokkos::parallel_for(
      "kzero::tests::update_by_packs", Policy(Execution(), 1, Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) { detail::device_update(team, step, count, arrays); });
}

// For any begin and end of the elements. The elements around them do not change.
TYPED_TEST(AdamW, ByPacksIsTheSameUpdate) {
  using T = TypeParam;
  const Index size = 80;
  const auto w = numbers<float>(size, 1), m = numbers<float>(size, 2, 0.1);
  const std::vector<float> v(size, 0.01F);
  const auto p = numbers<T>(size, 4);
  const Guarded<T> gradient(numbers<T>(size, 3));
  for (const Index first : {0, 1, 4, 8}) {
    for (const Index count : {0, 1, 3, 4, 7, 31, 64}) {
      const Guarded<float> packs[] = {Guarded(w), Guarded(m), Guarded(v)};
      const Guarded<float> plain[] = {Guarded(w), Guarded(m), Guarded(v)};
      const Guarded<T> rounded(p), expected(p);
      const auto at = [&](const Guarded<float>(&state)[3], const Guarded<T>& parameters) {
        return AdamWArrays<T>{gradient.data(), state[0].data(), state[1].data(), state[2].data(),
                              parameters.data()} +
               first;
      };
      update_by_packs<T>(at(packs, rounded), count);
      update_elements<T>(Execution(), step_at(3), at(plain, expected), count);
      for (int array = 0; array < 3; ++array) {
        const auto found = packs[array].host(), wanted = plain[array].host();
        for (Index i = 0; i < size; ++i) {
          const bool updated = i >= first && i < first + count;
          EXPECT_NEAR(found[i], wanted[i], updated ? 2 * gamma(12) : 0) << array << ' ' << i;
        }
      }
      const auto masters = packs[0].host();
      const auto values = rounded.host();
      for (Index i = 0; i < size; ++i) {
        const bool updated = i >= first && i < first + count;
        EXPECT_EQ(as_double(values[i]), as_double(updated ? T(masters[i]) : p[i])) << i;
      }
    }
  }
}

}  // namespace

}  // namespace kzero::kernels
