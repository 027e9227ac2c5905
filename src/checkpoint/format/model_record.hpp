// The model's record in a checkpoint's manifest: an attribute of /model for each defining key of
// its family (deck/architecture.hpp).
#pragma once

#include <filesystem>

#include "deck/config.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

void put_model(storage::Hdf5File& file, const deck::Model& model);

/// Reads the defining keys. The other keys keep their defaults. Throws Error(files) with `path` for
/// values that no deck may have, alone or together.
deck::Model get_model(const storage::Hdf5File& file, const std::filesystem::path& path);

}  // namespace kzero::checkpoint
