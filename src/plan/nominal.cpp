#include "plan/nominal.hpp"

#include "optim/adamw.hpp"
#include "plan/search.hpp"

namespace kzero::plan {

Holding nominal(Index parameters, const Launch& launch) {
  const Index k = param::bytes_per_element(optim::adamw_state());
  // A state is whole below the stage that cuts it.
  const auto state = [&](const char* name, Index bytes_each, Index cut_from_stage) {
    const Index cut = launch.stage >= cut_from_stage ? launch.data_ranks : 1;
    return metrics::CategoryBytes{name,
                                  ceil_div(bytes_each * parameters, cut * launch.tensor_ranks)};
  };
  return {launch,
          parameters,
          {state("parameters", 2, 3), state("gradients", 2, 2), state("optimizer", k, 1)}};
}

Holding largest_nominal(Index bytes, const Launch& launch) {
  const auto fits = [&](Index parameters) {
    return parameters <= most_parameters && nominal(parameters, launch).total_bytes() <= bytes;
  };
  return nominal(largest(fits), launch);
}

}  // namespace kzero::plan
