#include "optim/muon.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/adamw.hpp"
#include "optim/elementwise.hpp"
#include "optim/kinds.hpp"

namespace kzero::optim {

namespace {

class Muon : public ElementwiseOptimizer<Muon>, public MuonMatrices {
 public:
  explicit Muon(const deck::Optimizer& deck) : ElementwiseOptimizer(deck), MuonMatrices(deck) {}

  std::string_view kind() const override { return "muon"; }
  const param::StateArrays& state() const override { return muon_state(); }
  const MatrixRule* matrix_rule() const override { return this; }

  /// The gradient of a matrix has already been replaced by X.
  template <class Where, class T>
  void update_share(const Where& where, const Update& update, const Share<T>& share) const {
    kernels::UpdateBatch<T, kernels::MuonRate, Where> matrices(where);
    kernels::UpdateBatch<T, kernels::AdamWStep, Where> others(where);
    for_each_part(update, share, [&](const Update& own, const ParameterPart<T>& part) {
      if (part.spec->is_matrix()) {
        matrices.add({rate_of(own, part), arrays_of<kernels::MuonRate::arrays>(part), part.count});
      } else {
        others.add({adamw_step(deck_, own, part.weight_decay),
                    arrays_of<kernels::AdamWStep::arrays>(part), part.count});
      }
    });
    matrices.run();
    others.run();
  }

 private:
  template <class T>
  kernels::MuonRate rate_of(const Update& update, const ParameterPart<T>& part) const {
    const param::ParamSpec& p = *part.spec;
    const auto longer = static_cast<double>(std::max(p.matrix_rows(), p.matrix_columns()));
    return {.rate = static_cast<float>(update.lr * rms_of_adamw * std::sqrt(longer)),
            .kept = kept_after_decay(update, part.weight_decay),
            .cautious = deck_.cautious_decay};
  }
};

}  // namespace

const param::StateArrays& muon_state() {
  static const param::StateArrays arrays{
      {param::master_weights}, {"momentum"}, {"second_moment", param::Extent::all_but_matrices}};
  return arrays;
}

void MuonMatrices::prepare(const Place& place, const Update& update, const AnyShare& share) const {
  const kernels::MuonMomentum momentum{.momentum = static_cast<float>(momentum_),
                                       .one_minus_momentum = static_cast<float>(1 - momentum_),
                                       .nesterov = nesterov_,
                                       .gradient_scale = static_cast<float>(update.gradient_scale),
                                       .scale = static_cast<float>(update.loss_scale)};
  std::visit(
      [&]<class Where, class T>(const Where& where, const Share<T>& s) {
        for (const param::Part& part : param::parts(*s.spec, *s.layout, s.begin, s.end)) {
          if (!s.spec->params[part.param].is_matrix()) continue;
          const Index at = part.in_unit - s.begin;
          kernels::muon_momentum<T>(
              where, momentum, {s.gradient + at, (s.state + at)[1], s.prepared + at}, part.count);
        }
      },
      place, share);
}

std::unique_ptr<const Optimizer> make_muon(const deck::Optimizer& deck) {
  return std::make_unique<Muon>(deck);
}

}  // namespace kzero::optim
