// Checks that an HDF5 file is self-contained: links and datasets may lead to other files, which a
// foreign manifest must not make anybody read.
#pragma once

#include <hdf5.h>

#include <filesystem>

namespace kzero::storage {

/// Throws Error(files) for the first object of the open file that leads out of it or is reached by
/// no plain link: an external, soft or user-defined link, a dataset with external storage or a
/// virtual one. Groups may be in the root only. Call it before anything is opened by name; `path`
/// is for messages.
void require_no_foreign_links(hid_t file, const std::filesystem::path& path);

}  // namespace kzero::storage
