// Routers whose biases balance the choices of experts without a loss (Wang et al., arXiv
// 2408.15664, which DeepSeek-V3 and GLM-4.5 use).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer.hpp"
#include "optim/place.hpp"

namespace kzero::engine {

/// The change of all biases after a step: `rate` more for an expert that was chosen less often than
/// the mean of its block, `rate` less if more often. All ranks know the same integers.
class RouterBalance {
 public:
  /// Changes nothing.
  RouterBalance() = default;

  /// choices [blocks, experts]: how often each was chosen in a step, over the global batch. `units`
  /// are the model's; each block has one parameter that follows choices, or none has.
  RouterBalance(const param::Table& units, std::span<const std::uint64_t> choices, double rate);

  /// Adds the changes to the master weights of a share of unit u, before its optimizer updates it.
  template <class T>
  void apply(const optim::Place& place, Index u, const optim::Share<T>& share) const;

 private:
  std::vector<std::vector<float>> changes_{};  // of each unit [experts]; empty: it has no biases
};

}  // namespace kzero::engine
