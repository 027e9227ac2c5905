// Optimizers that update consecutive elements of one parameter at a time. The inputs are gradient
// and state and, in later passes, sums over the parameter. A rule defines what one pass does to the
// elements. This file iterates over the parameters of a share.
#pragma once

#include "kernels/element_update.hpp"
#include "optim/optimizer.hpp"

namespace kzero::optim {

/// Consecutive elements [0, count) of one parameter.
template <class T>
struct ParameterPart {
  bool decays = false;  // whether weight decay applies to the parameter
  const T* gradient = nullptr;
  T* parameters = nullptr;
  State state;
  Index count = 0;
  Index first = 0;                         // number of element 0 within the unit
  Index in_param = 0;                      // and within the rank's part of the parameter
  const param::ParamSpec* spec = nullptr;  // of the parameter, as all members below
  const std::uint64_t* sums = nullptr;     // from the pass before
  std::uint64_t* adds = nullptr;           // in this pass; null: not added up
  const float* reduced = nullptr;
};

/// Calls apply(part) for every parameter of a share.
template <class T, class Apply>
void for_each_parameter(const Optimizer& optimizer, int pass, const Share<T>& share,
                        const Apply& apply) {
  for (const param::Part& part : param::parts(*share.spec, *share.layout, share.begin, share.end)) {
    const Index at = part.in_unit - share.begin;
    const param::ParamSpec& spec = share.spec->params[part.param];
    ParameterPart<T> found{
        spec.decays, share.gradient + at, share.parameters + at, share.state + at,
        part.count,  part.in_unit,        part.in_param,         &spec};
    const auto before = [&](auto count_of) {
      Index total = 0;
      for (Index p = 0; p < part.param; ++p) total += count_of(share.spec->params[p]);
      return total;
    };
    const auto words_in = [&](int which) {
      return before([&](const auto& other) { return optimizer.sum_words(which, other); });
    };
    if (share.sums != nullptr) found.sums = share.sums + words_in(pass - 1);
    if (share.adds != nullptr && spec.split.is_owned_by(share.tensor_rank))
      found.adds = share.adds + words_in(pass);
    if (share.reduced != nullptr)
      found.reduced = share.reduced + before([&](const auto& other) {
                        return param::length_of(optimizer.reduced_state(), other.shape);
                      });
    apply(found);
  }
}

/// Base of such an optimizer. `Rule`, which derives from it, has
///   auto step_of(const Update&) const         the values that are computed once per pass
///   void apply(place, const STEP&, const ParameterPart<T>&) const
/// for each alternative of Place and every T of a run's precision.
template <class Rule>
class ElementwiseOptimizer : public Optimizer {
 public:
  void update(const Place& place, const Update& update, const AnyShare& share) const final {
    const Rule& rule = static_cast<const Rule&>(*this);
    const auto step = rule.step_of(update);
    std::visit(
        [&](const auto& where, const auto& of_type) {
          for_each_parameter(*this, update.pass, of_type,
                             [&](const auto& part) { rule.apply(where, step, part); });
        },
        place, share);
  }
};

/// The first `count` state arrays of a part, for kernels.
template <int count, class T>
kernels::UpdateArrays<T, count> arrays_of(const ParameterPart<T>& part) {
  kernels::UpdateArrays<T, count> arrays;
  arrays.gradient = part.gradient;
  for (std::size_t a = 0; a < count; ++a) arrays.state[a] = part.state[a];
  arrays.parameters = part.parameters;
  return arrays;
}

/// Base of an optimizer whose step is a rule of kernels/element_update.hpp. `Own`, which derives
/// from it, has
///   Rule rule_of(const Update&, bool decays) const
/// and its state() declares Rule::arrays arrays, in the order of the rule's.
template <class Own, class Rule>
class RuleOptimizer : public ElementwiseOptimizer<RuleOptimizer<Own, Rule>> {
 public:
  /// The step of parameters that decay and of those that do not.
  struct Step {
    Rule decaying, other;
    const Rule& of(bool decays) const { return decays ? decaying : other; }
  };

  Step step_of(const Update& update) const {
    const Own& own = static_cast<const Own&>(*this);
    return {own.rule_of(update, true), own.rule_of(update, false)};
  }

  template <class Where, class T>
  void apply(const Where& where, const Step& step, const ParameterPart<T>& part) const {
    kernels::update_elements<T>(where, step.of(part.decays), arrays_of<Rule::arrays>(part),
                                part.count);
  }
};

}  // namespace kzero::optim
