#include "optim/lamb.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/update_sums.hpp"
#include "optim/adamw.hpp"
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
  explicit Lamb(const deck::Optimizer& deck) : deck_(deck) {}

  std::string_view kind() const override { return "lamb"; }

  const param::StateArrays& state() const override { return adamw_state(); }

  int passes() const override { return 2; }
  Index sum_words(int, const param::ParamSpec&) const override {
    return LambMoments::sums * kernels::ExactSum::words_of_sum;
  }

  struct Step {
    Update update;
    LambSettings decaying, other;
    const LambSettings& of(bool decays) const { return decays ? decaying : other; }
  };

  Step step_of(const Update& update) const {
    return {update, {adamw_step(deck_, update, true)}, {adamw_step(deck_, update, false)}};
  }

  template <class T>
  void apply(const tensor::Execution& exec, const Step& step, const ParameterPart<T>& part) const {
    const auto arrays = arrays_of<LambSettings::arrays>(part);
    if (step.update.pass == 0) {
      add(part,
          kernels::update_and_sum<T>(exec, moments(step, part), arrays, part.first, part.count));
    } else {
      kernels::update_elements<T>(exec, weights(step, part), arrays, part.count);
    }
  }

  template <class T>
  void apply_on_host(const Step& step, const ParameterPart<T>& part) const {
    const auto arrays = arrays_of<LambSettings::arrays>(part);
    if (step.update.pass == 0) {
      add(part,
          kernels::update_and_sum_on_host<T>(moments(step, part), arrays, part.first, part.count));
    } else {
      kernels::update_elements_on_host<T>(weights(step, part), arrays, part.count);
    }
  }

 private:
  template <class T>
  static void add(const ParameterPart<T>& part, const kernels::ExactSums<LambMoments::sums>& sums) {
    if (part.adds != nullptr) kernels::add_to_words(sums, part.adds);
  }

  template <class T>
  static LambMoments moments(const Step& step, const ParameterPart<T>& part) {
    return {step.of(part.decays)};
  }

  template <class T>
  static LambWeights weights(const Step& step, const ParameterPart<T>& part) {
    const double ratio = trust_ratio(kernels::ExactSum::of_words(part.sums, 0).value(),
                                     kernels::ExactSum::of_words(part.sums, 1).value());
    return {step.of(part.decays), static_cast<float>(step.update.lr * ratio)};
  }

  const deck::Optimizer deck_;
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
