// The record of adapters in a checkpoint's manifest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "deck/config.hpp"

namespace kzero::storage {
class Hdf5File;
}

namespace kzero::checkpoint {

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

}  // namespace kzero::checkpoint
