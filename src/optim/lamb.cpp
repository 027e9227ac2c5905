#include "optim/kinds.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/update_sums.hpp"
#include "optim/elementwise.hpp"

namespace kzero::optim {

namespace {

/// The settings of both passes: AdamW's, except that decay is part of the direction. The state
/// arrays are weight, first and second moment.
struct LambSettings {
  static constexpr int arrays = kernels::AdamWStep::arrays;

  kernels::AdamWStep adam;

  /// Returns the direction u of an element whose moments are already updated.
  KOKKOS_INLINE_FUNCTION float direction(const float (&state)[arrays]) const {
    const float step =
        (state[1] / adam.correction1) / (Kokkos::sqrt(state[2] / adam.correction2) + adam.eps);
    return Kokkos::fma(adam.decay, state[0], step);
  }
};

/// The first pass: m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2. It also sums the squares of w and of
/// u = (m/c1) / (sqrt(v/c2) + eps) + decay w.
struct LambMoments : LambSettings {
  static constexpr int sums = 2;

  KOKKOS_INLINE_FUNCTION static constexpr bool writes(int array) { return array > 0; }

  KOKKOS_INLINE_FUNCTION void operator()(float gradient, float (&state)[arrays]) const {
    const float g = gradient * adam.gradient_scale;
    state[1] = Kokkos::fma(adam.beta1, state[1], adam.one_minus_beta1 * g);
    state[2] = Kokkos::fma(adam.beta2, state[2], adam.one_minus_beta2 * g * g);
  }

  template <int sum>
  KOKKOS_INLINE_FUNCTION float term(const float (&state)[arrays]) const {
    const float value = sum == 0 ? state[0] : direction(state);
    return value * value;
  }
};

/// The last pass: w = w - rate u.
struct LambWeights : LambSettings {
  float rate = 0;  // lr times the trust ratio

  KOKKOS_INLINE_FUNCTION static constexpr bool writes(int array) { return array == 0; }

  KOKKOS_INLINE_FUNCTION void operator()(float, float (&state)[arrays]) const {
    state[0] = Kokkos::fma(-rate, direction(state), state[0]);
  }
};

class Lamb : public ElementwiseOptimizer<Lamb> {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;

  std::string_view kind() const override { return "lamb"; }

  const param::StateArrays& state() const override { return adamw_state(); }

  int passes() const override { return 2; }
  Index sum_words(int, const param::ParamSpec&) const override {
    return LambMoments::sums * kernels::ExactSum::words_of_sum;
  }

  template <class Where, class T>
  void update_share(const Where& where, const Update& update, const Share<T>& share) const {
    kernels::UpdateSumBatch<T, LambMoments, Where> moments(where);
    kernels::UpdateBatch<T, LambWeights, Where> weights(where);
    for_each_part(update, share, [&](const Update& own, const ParameterPart<T>& part) {
      const auto arrays = arrays_of<LambSettings::arrays>(part);
      const LambSettings settings{adamw_step(deck_, own, part.weight_decay)};
      if (update.pass == 0) {
        moments.add({{{settings}, arrays, part.count}, part.first, part.adds});
      } else {
        weights.add({{settings, rate_of(own, part)}, arrays, part.count});
      }
    });
    moments.run();
    weights.run();
  }

 private:
  template <class T>
  static float rate_of(const Update& update, const ParameterPart<T>& part) {
    const double ratio = trust_ratio(kernels::ExactSum::of_words(part.sums, 0).value(),
                                     kernels::ExactSum::of_words(part.sums, 1).value());
    return static_cast<float>(update.lr * ratio);
  }
};

}  // namespace

double trust_ratio(double weight_squares, double direction_squares) {
  if (!(weight_squares > 0) || !(direction_squares > 0)) return 1;
  return std::clamp(std::sqrt(weight_squares / direction_squares), 0.01, 10.0);
}

std::unique_ptr<const Optimizer> make_lamb(const deck::Optimizer& deck) {
  return std::make_unique<Lamb>(deck);
}

}  // namespace kzero::optim
