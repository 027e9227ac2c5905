// What a manifest records besides state arrays: model, adapters, norms and losses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/types.hpp"
#include "deck/config.hpp"

namespace kzero::storage {
class Hdf5File;
}

namespace kzero::checkpoint {

void put_model(storage::Hdf5File& file, const deck::Model& model);

/// Reads the defining keys. The other keys keep their defaults. Throws Error(files) with `path` for
/// values that no deck may have, alone or together.
deck::Model get_model(const storage::Hdf5File& file, const std::filesystem::path& path);

// The record of adapters in a checkpoint's manifest.

/// Of a run that trained adapters: the checkpoint holds these alone.
struct AdapterRecord {
  deck::Lora lora;              // its rank, alpha and targets
  std::uint64_t base_hash = 0;  // of the frozen weights (engine::Engine::base_hash)
};

/// Does nothing if `record` is empty.
void put_adapters(storage::Hdf5File& file, const std::optional<AdapterRecord>& record);

/// Returns the record of a manifest of `model`, if it has one. Throws Error(files) with `path` for
/// values that no deck may have, and for targets that are not in a resolved deck's order.
std::optional<AdapterRecord> get_adapters(const storage::Hdf5File& file, const deck::Model& model,
                                          const std::filesystem::path& path);

// The checkpoint's record of recent gradient norms, for optimizer.skip_above.

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

// The checkpoint's record of the losses before it. The record decides whether the checkpoint is
// from before the loss left its range. Retention and the way back depend on that.

/// The range of a training's losses. Its rule is in run/loss_range.hpp.
struct LossRecord {
  double last = 0;       // of the last step
  double included = 0;   // the last loss within the range
  double mean = 0;       // running mean of the losses within the range
  double change = 0;     // running mean of the distance of two consecutive ones
  double lowest = 0;     // lowest value of the running mean
  Index counted = 0;     // number of losses within the range so far
  Index sane_step = -1;  // number, from 0, of the last step with a loss within it; -1: none

  bool operator==(const LossRecord&) const = default;
};

/// Writes the record as attributes of the group "loss". Does nothing if `record` is empty.
void put_loss(storage::Hdf5File& file, const std::optional<LossRecord>& record);

/// Returns the record of a manifest, if it has one. Throws Error(files) for impossible numbers of a
/// checkpoint after `steps` steps; `path` is for messages.
std::optional<LossRecord> get_loss(const storage::Hdf5File& file, Index steps,
                                   const std::filesystem::path& path);

}  // namespace kzero::checkpoint
