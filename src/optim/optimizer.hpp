// AdamW on flat ranges: master weights and moments in fp32, whatever the precision of the model. It
// acts on the ranges it is given and does not know how they came to be this rank's.
#pragma once

#include "deck/config.hpp"
#include "memory/arenas.hpp"
#include "param/flat_layout.hpp"
#include "tensor/view.hpp"

namespace kzero::optim {

/// fp32 state of elements [0, n) of a unit, or of what a rank holds of it.
struct State {
  float* master = nullptr;
  float* first = nullptr;
  float* second = nullptr;
};

/// One unit's share of an update: parts of the unit that start at `begin` of it.
template <class T>
struct Share {
  const param::UnitSpec* spec = nullptr;
  const param::UnitLayout* layout = nullptr;
  Index begin = 0, end = 0;     // of the unit
  const T* gradient = nullptr;  // at begin
  T* parameters = nullptr;      // at begin
  State state;                  // at begin
};

/// What a step multiplies gradients with: unscaling by the loss scale, and clipping.
double gradient_scale(double norm, double clip, double loss_scale);

/// Updates a share in place. `updates` counts optimizer steps from 1, for the moments' bias
/// correction.
template <class T>
void update(const tensor::Execution& exec, const deck::Optimizer& optimizer, double lr,
            Index updates, double gradient_scale, const Share<T>& share);

}  // namespace kzero::optim
