// What Muon and NorMuon share: their state, and the first half of their update.
#pragma once

#include "kernels/muon.hpp"
#include "optim/optimizer.hpp"
#include "optim/place.hpp"

namespace kzero::optim {

/// The root mean square of an update's elements, as AdamW's (arXiv 2502.16982, section 2.2).
inline constexpr double rms_of_adamw = 0.2;

/// Master weights, momentum and, except for hidden matrices, second moment. In AdamW's part, the
/// momentum array is the first moment.
const param::StateArrays& muon_state();

/// The momentum of hidden matrices, with the deck's momentum and nesterov.
class MuonMatrices : public MatrixRule {
 public:
  explicit MuonMatrices(const deck::Optimizer& deck)
      : momentum_(deck.momentum), nesterov_(deck.nesterov) {}

  void prepare(const Place& place, const Update& update, const AnyShare& share) const override;

 private:
  double momentum_;
  bool nesterov_;
};

}  // namespace kzero::optim
