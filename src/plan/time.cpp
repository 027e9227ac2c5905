#include "plan/time.hpp"

namespace kzero::plan {

Estimate estimate(const Work& work, const Rates& rates) {
  return {.rates = rates,
          .model = work.operations / rates.operations,
          .recompute = work.recomputed_operations / rates.operations +
                       work.recomputed_bytes / rates.memory_bytes,
          .optimizer =
              work.optimizer_bytes / rates.memory_bytes + work.matrix_operations / rates.operations,
          .matrices = work.matrix_operations / rates.operations,
          .messages = work.sent_bytes / rates.sent_bytes};
}

}  // namespace kzero::plan
