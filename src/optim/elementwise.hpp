// Optimizers whose update of an element takes that element's gradient and state alone. A rule says
// what one step does to neighbouring elements of one parameter; this goes through the parameters of
// a share.
#pragma once

#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Neighbouring elements [0, count) of one parameter.
template <class T>
struct ParameterPart {
  bool decays = false;  // whether weight decay applies to the parameter
  const T* gradient = nullptr;
  T* parameters = nullptr;
  State state;
  Index count = 0;
};

/// apply(part) for every parameter of a share.
template <class T, class Apply>
void for_each_parameter(const Share<T>& share, const Apply& apply) {
  for (const param::Part& part : param::parts(*share.spec, *share.layout, share.begin, share.end)) {
    const Index at = part.in_unit - share.begin;
    apply(ParameterPart<T>{share.spec->params[static_cast<std::size_t>(part.param)].decays,
                           share.gradient + at, share.parameters + at, share.state + at,
                           part.count});
  }
}

/// Base of an elementwise optimizer. `Rule`, which derives from it, has
///   auto step_of(const Update&) const         what is computed once for a step
///   void apply(const tensor::Execution&, const STEP&, const ParameterPart<T>&) const
///   void apply_on_host(const STEP&, const ParameterPart<T>&) const
/// for every T of a run's precision; pointers are to device memory and to host memory.
template <class Rule>
class ElementwiseOptimizer : public Optimizer {
 public:
  void update(const tensor::Execution& exec, const Update& update,
              const Share<float>& share) const final {
    on_device(exec, update, share);
  }
  void update(const tensor::Execution& exec, const Update& update,
              const Share<bf16>& share) const final {
    on_device(exec, update, share);
  }
  void update(const tensor::Execution& exec, const Update& update,
              const Share<fp16>& share) const final {
    on_device(exec, update, share);
  }
  void update_on_host(const Update& update, const Share<float>& share) const final {
    on_host(update, share);
  }
  void update_on_host(const Update& update, const Share<bf16>& share) const final {
    on_host(update, share);
  }
  void update_on_host(const Update& update, const Share<fp16>& share) const final {
    on_host(update, share);
  }

 private:
  const Rule& rule() const { return static_cast<const Rule&>(*this); }

  template <class T>
  void on_device(const tensor::Execution& exec, const Update& update, const Share<T>& share) const {
    const auto step = rule().step_of(update);
    for_each_parameter(share,
                       [&](const ParameterPart<T>& part) { rule().apply(exec, step, part); });
  }

  template <class T>
  void on_host(const Update& update, const Share<T>& share) const {
    const auto step = rule().step_of(update);
    for_each_parameter(share,
                       [&](const ParameterPart<T>& part) { rule().apply_on_host(step, part); });
  }
};

}  // namespace kzero::optim
