// What a rank holds of a model on a grid: what every plan has, of a deck or of a nominal size.
#pragma once

#include <string>
#include <vector>

#include "metrics/records.hpp"

namespace kzero::plan {

/// Ranks and what they share out; the paper's N is data_ranks, its model-parallel degree
/// tensor_ranks.
struct Launch {
  Index data_ranks = 1;
  Index tensor_ranks = 1;
  Index stage = 0;

  Index ranks() const { return data_ranks * tensor_ranks; }
};

struct Holding : Launch {
  Index parameters = 0;                          // of the whole model
  std::vector<metrics::CategoryBytes> memory{};  // planned_bytes of the largest rank

  Index total_bytes() const {
    Index total = 0;
    for (const metrics::CategoryBytes& category : memory) total += category.planned_bytes;
    return total;
  }
};

}  // namespace kzero::plan
