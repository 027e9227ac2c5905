// The findings of `kzero check --launch` on a launch: whether its ranks agree, the speeds of ranks,
// nodes and links, and the places that are odd.
#pragma once

#include <string>

#include "deck/config.hpp"
#include "probe/comparison.hpp"
#include "probe/figures.hpp"

namespace kzero::tensor {
class Gemm;
}

namespace kzero::probe {

struct Survey {
  Index ranks = 1, threads = 1;  // threads of a rank
  double seconds = 0;            // that the survey needed
  Comparison comparison;
  Figures figures;
  std::vector<Finding> findings;
};

/// The launch to survey.
struct Launch {
  const grid::Group& world;
  const grid::Nodes& nodes;  // of `world`
  Index threads = 1;         // of this rank
  Index cores = 0;           // of this rank's node
};

/// Compares and measures with the deck's precision, widths and GEMM back end. Needs less than half
/// a minute unless a link is nearly dead. The root gets the survey, the other ranks an empty one.
/// Throws AgreedError(usage) if this build lacks the back end. Collective over the launch's world.
Survey survey(const Launch& launch, const deck::Config& config);

/// Computes products as wide as the deck's model in its precision, and digests their bits: sixteen
/// hexadecimal digits. If digests are equal, all bits of a run are probably equal. This is not
/// certain, because libraries choose their kernels by shape.
std::string product_bits(tensor::Gemm& gemm, const deck::Config& config);

}  // namespace kzero::probe
