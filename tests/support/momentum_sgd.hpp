// SGD with momentum, the smallest optimizer with an array in addition to the master weights. It
// shows that stages, plan and checkpoints follow an optimizer's declaration. It is not part of
// kzero.
//   m = momentum m + g; w = w (1 - lr decay) - lr m
#pragma once

#include <memory>

#include "kernels/row.hpp"
#include "optim/elementwise.hpp"

namespace kzero::tests {

struct MomentumStep {
  float lr = 0;
  float gradient_scale = 1;
  float momentum = 0.9F;
  float weight_decay = 0.1F;
};

/// Updates element i of a part, in loops of Kokkos and of the host. fma() fixes which product is
/// fused with an addition. Compilers may otherwise choose differently for elements in vectors and
/// for the remaining ones, and the beginning of a part depends on stage and ranks.
template <class T>
struct MomentumUpdate {
  MomentumStep step;
  float kept;  // factor of a weight after decay
  const T* gradient;
  float *master, *momentum;
  T* parameters;

  KOKKOS_INLINE_FUNCTION void operator()(Index i) const {
    const float g = static_cast<float>(gradient[i]) * step.gradient_scale;
    const float m = Kokkos::fma(step.momentum, momentum[i], g);
    const float w = Kokkos::fma(-step.lr, m, master[i] * kept);
    momentum[i] = m;
    master[i] = w;
    parameters[i] = static_cast<T>(w);
  }
};

class MomentumSgd : public optim::ElementwiseOptimizer<MomentumSgd> {
 public:
  MomentumSgd() : ElementwiseOptimizer({}) {}

  std::string_view kind() const override { return "momentum_sgd"; }

  const param::StateArrays& state() const override {
    static const param::StateArrays arrays{{param::master_weights}, {"momentum"}};
    return arrays;
  }

  template <class T>
  void apply(const tensor::Execution& exec, const optim::Update& step,
             const optim::ParameterPart<T>& part) const {
    Kokkos::parallel_for("kzero::tests::momentum_sgd", tensor::Range(exec, 0, part.count),
                         update_of(step, part));
  }

  template <class T>
  void apply(tensor::HostCores, const optim::Update& step,
             const optim::ParameterPart<T>& part) const {
    const MomentumUpdate<T> update = update_of(step, part);
    for (Index i = 0; i < part.count; ++i) update(i);
  }

 private:
  template <class T>
  static MomentumUpdate<T> update_of(const optim::Update& update,
                                     const optim::ParameterPart<T>& part) {
    const MomentumStep step{.lr = static_cast<float>(update.lr),
                            .gradient_scale = static_cast<float>(update.gradient_scale)};
    return {step,          1.0F - step.lr * (part.spec->decays ? step.weight_decay : 0.0F),
            part.gradient, part.state[0],
            part.state[1], part.parameters};
  }
};

inline std::shared_ptr<const optim::Optimizer> momentum_sgd() {
  return std::make_shared<MomentumSgd>();
}

}  // namespace kzero::tests
