// The checkpoint's record of recent gradient norms, for optimizer.skip_above.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/types.hpp"

namespace kzero::storage {
class Hdf5File;
}

namespace kzero::checkpoint {

/// Norms of applied steps, and the steps that were skipped for their norm (optim/spike_rule.hpp).
struct NormRecord {
  std::vector<double> norms{};  // of the last applied steps, oldest first
  Index skipped = 0;            // steps, since step 0
  Index skipped_in_row = 0;     // of the last steps that were skipped in a row for any reason

  bool operator==(const NormRecord&) const = default;
};

/// Writes the record as the group "norms". Does nothing if `record` is empty.
void put_norms(storage::Hdf5File& file, const std::optional<NormRecord>& record);

/// Returns the record of a manifest, if it has one. Throws Error(files) for impossible numbers of a
/// checkpoint with `skipped` skipped steps, the last `in_row` of them in a row; `path` is for
/// messages.
std::optional<NormRecord> get_norms(const storage::Hdf5File& file, Index skipped, Index in_row,
                                    const std::filesystem::path& path);

}  // namespace kzero::checkpoint
