#include "optim/muon.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/adamw.hpp"
#include "kernels/muon.hpp"
#include "optim/adamw.hpp"
#include "optim/elementwise.hpp"

namespace kzero::optim {

namespace {

constexpr double rms_of_adamw = 0.2;  // RMS of an update's elements (arXiv 2502.16982, section 2.2)

class Muon : public ElementwiseOptimizer<Muon>, public MatrixRule {
 public:
  struct Step {
    Update update;
    kernels::AdamWStep decaying, other;
  };

  explicit Muon(const deck::Optimizer& deck) : deck_(deck) {}

  std::string_view kind() const override { return "muon"; }

  /// In AdamW's part, the momentum array is the first moment.
  const param::StateArrays& state() const override {
    static const param::StateArrays arrays{
        {param::master_weights}, {"momentum"}, {"second_moment", param::Extent::all_but_matrices}};
    return arrays;
  }

  const MatrixRule* matrix_rule() const override { return this; }

  Step step_of(const Update& update) const {
    return {update, adamw_step(deck_, update, true), adamw_step(deck_, update, false)};
  }

  /// The gradient of a matrix has already been replaced by X.
  template <class T>
  void apply(const tensor::Execution& exec, const Step& step, const ParameterPart<T>& part) const {
    if (part.spec->is_matrix()) {
      kernels::update_elements<T>(exec, rate_of(step.update, *part.spec),
                                  arrays_of<kernels::MuonRate::arrays>(part), part.count);
    } else {
      kernels::adamw<T>(exec, part.decays ? step.decaying : step.other,
                        arrays_of<kernels::AdamWStep::arrays>(part), part.count);
    }
  }

  template <class T>
  void apply_on_host(const Step& step, const ParameterPart<T>& part) const {
    if (part.spec->is_matrix()) {
      kernels::update_elements_on_host<T>(rate_of(step.update, *part.spec),
                                          arrays_of<kernels::MuonRate::arrays>(part), part.count);
    } else {
      kernels::adamw_on_host<T>(part.decays ? step.decaying : step.other,
                                arrays_of<kernels::AdamWStep::arrays>(part), part.count);
    }
  }

  void prepare(const tensor::Execution& exec, const Update& update, const Share<float>& share,
               float* result) const override {
    prepare_on_device(exec, update, share, result);
  }
  void prepare(const tensor::Execution& exec, const Update& update, const Share<bf16>& share,
               bf16* result) const override {
    prepare_on_device(exec, update, share, result);
  }
  void prepare(const tensor::Execution& exec, const Update& update, const Share<fp16>& share,
               fp16* result) const override {
    prepare_on_device(exec, update, share, result);
  }
  void prepare_on_host(const Update& update, const Share<float>& share,
                       float* result) const override {
    prepare_in_host_memory(update, share, result);
  }
  void prepare_on_host(const Update& update, const Share<bf16>& share,
                       bf16* result) const override {
    prepare_in_host_memory(update, share, result);
  }
  void prepare_on_host(const Update& update, const Share<fp16>& share,
                       fp16* result) const override {
    prepare_in_host_memory(update, share, result);
  }

 private:
  kernels::MuonRate rate_of(const Update& update, const param::ParamSpec& p) const {
    const auto longer = static_cast<double>(std::max(p.matrix_rows(), p.matrix_columns()));
    return {.rate = static_cast<float>(update.lr * rms_of_adamw * std::sqrt(longer)),
            .kept = kept_after_decay(deck_, update, p.decays)};
  }

  kernels::MuonMomentum momentum_of(const Update& update) const {
    return {.momentum = static_cast<float>(deck_.momentum),
            .one_minus_momentum = static_cast<float>(1 - deck_.momentum),
            .nesterov = deck_.nesterov,
            .gradient_scale = static_cast<float>(update.gradient_scale),
            .scale = static_cast<float>(update.loss_scale)};
  }

  /// Calls work(at, momentum, count) for each hidden matrix of a share. `at` is its offset in the
  /// share.
  template <class T, class Work>
  static void for_each_matrix(const Share<T>& share, const Work& work) {
    for (const param::Part& part :
         param::parts(*share.spec, *share.layout, share.begin, share.end)) {
      if (!share.spec->params[static_cast<std::size_t>(part.param)].is_matrix()) continue;
      const Index at = part.in_unit - share.begin;
      work(at, (share.state + at)[1], part.count);
    }
  }

  template <class T>
  void prepare_on_device(const tensor::Execution& exec, const Update& update, const Share<T>& share,
                         T* result) const {
    for_each_matrix(share, [&](Index at, float* momentum, Index count) {
      kernels::muon_momentum<T>(exec, momentum_of(update),
                                {share.gradient + at, momentum, result + at}, count);
    });
  }

  template <class T>
  void prepare_in_host_memory(const Update& update, const Share<T>& share, T* result) const {
    for_each_matrix(share, [&](Index at, float* momentum, Index count) {
      kernels::muon_momentum_on_host<T>(momentum_of(update),
                                        {share.gradient + at, momentum, result + at}, count);
    });
  }

  const deck::Optimizer deck_;
};

}  // namespace

std::unique_ptr<const Optimizer> make_muon(const deck::Optimizer& deck) {
  return std::make_unique<Muon>(deck);
}

}  // namespace kzero::optim
