// Optimizers that update consecutive elements of one parameter at a time. The inputs are gradient
// and state and, in later passes, sums over the parameter. A rule defines what one pass does to the
// elements. This file iterates over the parameters of a share.
#pragma once

#include "kernels/element_update.hpp"
#include "optim/optimizer.hpp"
#include "optim/place.hpp"

namespace kzero::optim {

/// Consecutive elements [0, count) of one parameter.
template <class T>
struct ParameterPart {
  const T* gradient = nullptr;
  T* parameters = nullptr;
  State state;
  Index count = 0;
  Index first = 0;                         // number of element 0 within the unit
  Index in_param = 0;                      // and within the rank's part of the parameter
  const param::ParamSpec* spec = nullptr;  // of the parameter, as all members below
  double weight_decay = 0;
  const std::uint64_t* sums = nullptr;  // from the pass before
  std::uint64_t* adds = nullptr;        // in this pass; null: not added up
  const float* reduced = nullptr;
};

/// Calls apply(part) for every parameter of a share.
template <class T, class Apply>
void for_each_parameter(const Optimizer& optimizer, int pass, const Share<T>& share,
                        const Apply& apply) {
  for (const param::Part& part : param::parts(*share.spec, *share.layout, share.begin, share.end)) {
    const Index at = part.in_unit - share.begin;
    const param::ParamSpec& spec = share.spec->params[part.param];
    ParameterPart<T> found{share.gradient + at,
                           share.parameters + at,
                           share.state + at,
                           part.count,
                           part.in_unit,
                           part.in_param,
                           &spec};
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
///   void apply(place, const Update&, const ParameterPart<T>&) const
/// for each alternative of Place and every T of a run's precision, or an update_share() of its own.
/// The update has the parameter's own learning rate, the part its weight decay.
template <class Rule>
class ElementwiseOptimizer : public Optimizer {
 public:
  explicit ElementwiseOptimizer(const deck::Optimizer& deck) : deck_(deck) {}

  void update(const Place& place, const Update& update, const AnyShare& share) const final {
    std::visit([&](const auto& where,
                   const auto& of_type) { rule().update_share(where, update, of_type); },
               place, share);
  }

  template <class Where, class T>
  void update_share(const Where& where, const Update& update, const Share<T>& share) const {
    for_each_part(update, share, [&](const Update& own, const ParameterPart<T>& part) {
      rule().apply(where, own, part);
    });
  }

 protected:
  /// Calls f(update, part) for every parameter of a share, with the parameter's own rates.
  template <class T, class F>
  void for_each_part(const Update& update, const Share<T>& share, const F& f) const {
    for_each_parameter(*this, update.pass, share, [&](ParameterPart<T> part) {
      const ParameterRates rates = rates_of(deck_, *part.spec);
      Update own = update;
      own.lr *= rates.lr_scale;
      part.weight_decay = rates.weight_decay;
      f(own, part);
    });
  }

  const deck::Optimizer deck_;

 private:
  const Rule& rule() const { return static_cast<const Rule&>(*this); }
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
///   Rule rule_of(const Update&, double weight_decay) const
/// and its state() declares Rule::arrays arrays, in the order of the rule's.
template <class Own, class Rule>
class RuleOptimizer : public ElementwiseOptimizer<RuleOptimizer<Own, Rule>> {
 public:
  using ElementwiseOptimizer<RuleOptimizer<Own, Rule>>::ElementwiseOptimizer;

  template <class Where, class T>
  void update_share(const Where& where, const Update& update, const Share<T>& share) const {
    const Own& own = static_cast<const Own&>(*this);
    kernels::UpdateBatch<T, Rule, Where> batch(where);
    this->for_each_part(update, share, [&](const Update& of_part, const ParameterPart<T>& part) {
      batch.add(
          {own.rule_of(of_part, part.weight_decay), arrays_of<Rule::arrays>(part), part.count});
    });
    batch.run();
  }
};

}  // namespace kzero::optim
