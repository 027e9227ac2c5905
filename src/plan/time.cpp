#include "plan/time.hpp"

namespace kzero::plan {

Estimate estimate(const Work& work, const Rates& rates) {
  const bool has_link = rates.host.known();
  const double recomputed_bytes = work.recomputed_bytes + (has_link ? 0 : work.offloaded_bytes);
  const double update_rate =
      work.updates_on_host && has_link ? rates.host.memory_bytes : rates.memory_bytes;
  return {
      .rates = rates,
      .model = work.operations / rates.operations,
      .recompute =
          work.recomputed_operations / rates.operations + recomputed_bytes / rates.memory_bytes,
      .optimizer = work.optimizer_bytes / update_rate + work.matrix_operations / rates.operations,
      .matrices = work.matrix_operations / rates.operations,
      .messages = work.sent_bytes / rates.sent_bytes};
}

}  // namespace kzero::plan
