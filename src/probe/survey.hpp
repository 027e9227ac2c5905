// The results of `kzero check --launch`: whether the ranks of a launch agree, what ranks, nodes and
// links attain, and which place is the odd one out.
#pragma once

#include "deck/config.hpp"
#include "probe/agreement.hpp"
#include "probe/figures.hpp"

namespace kzero::probe {

struct Survey {
  Index ranks = 1, threads = 1;  // threads of a rank
  double seconds = 0;            // duration of the survey
  Agreement agreement;
  Figures figures;
  std::vector<Finding> findings;
};

struct Launch {
  const grid::Group& world;
  const grid::Nodes& nodes;  // of the ranks of `world`
  Index threads = 1;         // of this rank
  Index cores = 0;           // of this rank's node
};

/// Compares and measures with the deck's precision, widths and GEMM back end. Takes less than half
/// a minute unless a link is nearly dead. The root gets everything, and the others an empty survey.
/// Throws AgreedError(usage) if this build lacks the back end. Collective over the launch's world.
Survey survey(const Launch& launch, const deck::Config& config);

}  // namespace kzero::probe
