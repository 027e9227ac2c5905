#include "optim/lamb.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/update_sums.hpp"
#include "optim/elementwise.hpp"

namespace kzero::optim {

namespace {

/// What both passes compute with; state is weight, first and second moment.
struct LambSettings {
  static constexpr int arrays = 3;

  float beta1 = 0, beta2 = 0;
  float one_minus_beta1 = 1, one_minus_beta2 = 1;  // subtracted in fp64
  float eps = 0;
  float decay = 0;
  float correction1 = 1, correction2 = 1;  // 1 - beta^t
  float gradient_scale = 1;

  /// The direction u of an element whose moments are updated.
  KOKKOS_INLINE_FUNCTION float direction(const float (&state)[arrays]) const {
    const float adam = (state[1] / correction1) / (Kokkos::sqrt(state[2] / correction2) + eps);
    return Kokkos::fma(decay, state[0], adam);
  }
};

/// The first pass: m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; the squares of w and of
/// u = (m/c1) / (sqrt(v/c2) + eps) + decay w.
struct LambMoments : LambSettings {
  static constexpr int sums = 2;

  KOKKOS_INLINE_FUNCTION static constexpr bool writes(int array) { return array > 0; }

  KOKKOS_INLINE_FUNCTION void operator()(float gradient, float (&state)[arrays]) const {
    const float g = gradient * gradient_scale;
    state[1] = Kokkos::fma(beta1, state[1], one_minus_beta1 * g);
    state[2] = Kokkos::fma(beta2, state[2], one_minus_beta2 * g * g);
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

  const param::StateArrays& state() const override {
    static const param::StateArrays arrays{
        {param::master_weights}, {"first_moment"}, {"second_moment"}};
    return arrays;
  }

  int passes() const override { return 2; }
  Index sum_words(int, const param::ParamSpec&) const override {
    return LambMoments::sums * kernels::ExactSum::words_of_sum;
  }

  struct Step {
    int pass = 0;
    double lr = 0;
    LambSettings settings;  // of a parameter that decays
  };

  Step step_of(const Update& update) const {
    const auto bias = [&](double beta) {
      return static_cast<float>(1 - std::pow(beta, static_cast<double>(update.number)));
    };
    Step step{update.pass, update.lr, {}};
    LambSettings& s = step.settings;
    s.beta1 = static_cast<float>(deck_.beta1);
    s.beta2 = static_cast<float>(deck_.beta2);
    s.one_minus_beta1 = static_cast<float>(1 - deck_.beta1);
    s.one_minus_beta2 = static_cast<float>(1 - deck_.beta2);
    s.eps = static_cast<float>(deck_.eps);
    s.decay = static_cast<float>(deck_.weight_decay);
    s.correction1 = bias(deck_.beta1);
    s.correction2 = bias(deck_.beta2);
    s.gradient_scale = static_cast<float>(update.gradient_scale);
    return step;
  }

  template <class T>
  void apply(const tensor::Execution& exec, const Step& step, const ParameterPart<T>& part) const {
    const auto arrays = arrays_of<LambSettings::arrays>(part);
    if (step.pass == 0) {
      add(part,
          kernels::update_and_sum<T>(exec, moments(step, part), arrays, part.first, part.count));
    } else {
      kernels::update_elements<T>(exec, weights(step, part), arrays, part.count);
    }
  }

  template <class T>
  void apply_on_host(const Step& step, const ParameterPart<T>& part) const {
    const auto arrays = arrays_of<LambSettings::arrays>(part);
    if (step.pass == 0) {
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
  static LambSettings settings(const Step& step, const ParameterPart<T>& part) {
    LambSettings settings = step.settings;
    if (!part.decays) settings.decay = 0;
    return settings;
  }

  template <class T>
  static LambMoments moments(const Step& step, const ParameterPart<T>& part) {
    return {settings(step, part)};
  }

  template <class T>
  static LambWeights weights(const Step& step, const ParameterPart<T>& part) {
    const double ratio = trust_ratio(kernels::ExactSum::of_words(part.sums, 0).value(),
                                     kernels::ExactSum::of_words(part.sums, 1).value());
    return {settings(step, part), static_cast<float>(step.lr * ratio)};
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
