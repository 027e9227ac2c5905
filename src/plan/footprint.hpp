// The footprint of a model on a grid: the bytes of the model that a rank holds. Plans of decks and
// of nominal sizes both have it.
#pragma once

#include <string>
#include <vector>

#include "memory/ledger.hpp"
#include "metrics/records.hpp"

namespace kzero::plan {

/// The ranks that partition the model. data_ranks is the paper's N, tensor_ranks its model-parallel
/// degree.
struct Launch {
  Index data_ranks = 1;
  Index tensor_ranks = 1;
  Index stage = 0;
  Index sequence_ranks = 1;  // data ranks that share each sequence

  Index ranks() const { return data_ranks * tensor_ranks; }
};

struct Footprint : Launch {
  Index parameters = 0;                          // of the full model
  std::vector<metrics::CategoryBytes> memory{};  // planned_bytes of the largest rank

  Index total_bytes() const {
    Index total = 0;
    for (const metrics::CategoryBytes& category : memory) total += category.planned_bytes;
    return total;
  }

  /// Bytes in the memory where a rank computes. On devices this excludes what is kept on the host.
  Index device_bytes() const {
    Index device = total_bytes();
    for (const metrics::CategoryBytes& category : memory)
      if (category.name == memory::name_of(memory::Category::offloaded))
        device -= category.planned_bytes;
    return device;
  }
};

}  // namespace kzero::plan
