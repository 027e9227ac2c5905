#include "plan/nominal.hpp"

#include "optim/kinds.hpp"
#include "plan/search.hpp"
#include "zero/stage.hpp"

namespace kzero::plan {

Footprint nominal(Index parameters, const Launch& launch) {
  const Index k = param::bytes_per_element(optim::adamw_state());
  const zero::Stage stage = zero::stage(launch.stage, launch.data_ranks);
  const auto state = [&](const char* name, Index bytes_each, zero::Placement placement) {
    const Index shards = placement == zero::Placement::partitioned ? launch.data_ranks : 1;
    return metrics::CategoryBytes{name,
                                  ceil_div(bytes_each * parameters, shards * launch.tensor_ranks)};
  };
  return {launch,
          parameters,
          {state("parameters", 2, stage.parameters), state("gradients", 2, stage.gradients),
           state("optimizer", k, stage.optimizer)}};
}

Footprint largest_nominal(Index bytes, const Launch& launch) {
  const auto fits = [&](Index parameters) {
    return parameters <= max_parameters && nominal(parameters, launch).total_bytes() <= bytes;
  };
  return nominal(largest(fits), launch);
}

}  // namespace kzero::plan
