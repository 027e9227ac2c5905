// Where a transformer drops elements in training, and the masks of each place.
#pragma once

#include <optional>

#include "deck/config.hpp"
#include "kernels/dropout.hpp"

namespace kzero::model {

/// The masks of one block for one micro-batch: of what its halves add to the residual stream, with
/// model.residual_scale as a factor, and of the weights of attention.
struct BlockDropout {
  kernels::Dropout attention, feed_forward, weights;
};

/// A model's dropout. Masks are numbered by unit and place, as in the model without tensor
/// parallelism. `first_sample` is the number of the micro-batch's first sample in the training;
/// without it nothing is dropped.
class ModelDropout {
 public:
  ModelDropout(const deck::Model& model, std::uint64_t seed)
      : stream_(model.dropout),
        weights_(model.attention_dropout),
        residual_scale_(static_cast<float>(model.residual_scale)),
        seed_(seed) {}

  kernels::Dropout embedding(std::optional<Index> first_sample) const {
    return masks(stream_, Place::embedding, 0, first_sample);
  }
  BlockDropout block(Index i, std::optional<Index> first_sample) const {
    return {scaled(masks(stream_, Place::attention, i, first_sample)),
            scaled(masks(stream_, Place::feed_forward, i, first_sample)),
            masks(weights_, Place::attention_weights, i, first_sample)};
  }

 private:
  enum class Place { embedding, attention, feed_forward, attention_weights };  // bits depend on it

  kernels::Dropout masks(double p, Place place, Index block,
                         std::optional<Index> first_sample) const {
    if (!first_sample || p == 0) return {};
    constexpr Index places = 4;
    return kernels::make_dropout(p, seed_, places * block + static_cast<Index>(place),
                                 *first_sample);
  }

  kernels::Dropout scaled(kernels::Dropout masks) const {
    masks.scale *= residual_scale_;
    return masks;
  }

  double stream_, weights_;  // probabilities
  float residual_scale_;
  std::uint64_t seed_;
};

}  // namespace kzero::model
