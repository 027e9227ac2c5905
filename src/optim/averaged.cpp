#include "optim/kinds.hpp"

#include <utility>

#include "kernels/element_update.hpp"
#include "optim/place.hpp"

namespace kzero::optim {

namespace {

/// The step of an average, state[1], towards the weight, state[0]. With decay e + (1 - decay) w the
/// rounded factors would not add up to 1, and the average of constant weights would be off by their
/// error / (1 - decay).
struct AverageStep {
  static constexpr int arrays = 2;

  float rate = 1;  // 1 - decay

  KOKKOS_INLINE_FUNCTION static constexpr bool writes(int array) { return array == 1; }

  KOKKOS_INLINE_FUNCTION void operator()(float, float (&state)[arrays]) const {
    state[1] = Kokkos::fma(rate, state[0] - state[1], state[1]);
  }
};

class Averaged : public Optimizer {
 public:
  Averaged(std::unique_ptr<const Optimizer> rule, double decay)
      : rule_(std::move(rule)), step_{static_cast<float>(1 - decay)}, arrays_(rule_->state()) {
    arrays_.push_back({param::averaged_weights});
  }

  std::string_view kind() const override { return rule_->kind(); }
  const param::StateArrays& state() const override { return arrays_; }
  const MatrixRule* matrix_rule() const override { return rule_->matrix_rule(); }
  int passes() const override { return rule_->passes(); }
  Index sum_words(int pass, const param::ParamSpec& parameter) const override {
    return rule_->sum_words(pass, parameter);
  }
  const param::ReducedArrays& reduced_state() const override { return rule_->reduced_state(); }
  void update_reduced(const Update& update, const param::ParamSpec& parameter,
                      const std::uint64_t* sums, float* reduced) const override {
    rule_->update_reduced(update, parameter, sums, reduced);
  }
  bool runs_on_host_alone() const override { return rule_->runs_on_host_alone(); }

  void update(const Place& place, const Update& update, const AnyShare& share) const override {
    const bool is_last = update.pass + 1 == passes();
    if (is_last && update.number == 1) average(place, {}, share);  // the average is still 0
    rule_->update(place, update, share);
    if (is_last) average(place, step_, share);
  }

 private:
  void average(const Place& place, const AverageStep& step, const AnyShare& share) const {
    std::visit(
        [&]<class Where, class T>(const Where& where, const Share<T>& s) {
          const kernels::UpdateArrays<T, AverageStep::arrays> arrays{
              s.gradient, {s.state.master(), s.state[arrays_.size() - 1]}, s.parameters};
          kernels::update_elements<T>(where, step, arrays, s.end - s.begin);
        },
        place, share);
  }

  std::unique_ptr<const Optimizer> rule_;
  AverageStep step_;
  param::StateArrays arrays_;
};

}  // namespace

std::unique_ptr<const Optimizer> make_averaged(std::unique_ptr<const Optimizer> rule,
                                               double decay) {
  return std::make_unique<Averaged>(std::move(rule), decay);
}

}  // namespace kzero::optim
