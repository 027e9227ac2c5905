// The bytes of a model that a rank holds on a grid, which every plan has, of a deck or of a nominal
// size.
#pragma once

#include <string>
#include <vector>

#include "memory/category.hpp"
#include "metrics/records.hpp"

namespace kzero::plan {

/// Ranks over which the model is partitioned; the paper's N is data_ranks, its model-parallel
/// degree tensor_ranks.
struct Launch {
  Index data_ranks = 1;
  Index tensor_ranks = 1;
  Index stage = 0;

  Index ranks() const { return data_ranks * tensor_ranks; }
};

struct Holding : Launch {
  Index parameters = 0;                          // of the full model
  std::vector<metrics::CategoryBytes> memory{};  // planned_bytes of the largest rank

  Index total_bytes() const {
    Index total = 0;
    for (const metrics::CategoryBytes& category : memory) total += category.planned_bytes;
    return total;
  }

  /// Bytes of the memory in which a rank computes: on devices without what lies on their host.
  Index device_bytes() const {
    Index device = total_bytes();
    for (const metrics::CategoryBytes& category : memory)
      if (category.name == memory::name_of(memory::Category::offloaded))
        device -= category.planned_bytes;
    return device;
  }
};

}  // namespace kzero::plan
