// Texts in HDF5 files. HDF5 allocates each text that it reads.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <string>
#include <vector>

#include "storage/hdf5_file.hpp"

namespace kzero::storage {

/// Bytes that a text takes in a dataset, besides its own bytes elsewhere in the file.
inline constexpr hsize_t text_reference_bytes = 16;

/// The type of texts of any length in UTF-8.
Hdf5Handle text_type();

/// Reads the text of an attribute that has one value. Returns false if HDF5 fails.
bool read_text(hid_t attribute, std::string& text);

/// Reads the texts of a dataset of at most one dimension, one after another: thousands of texts may
/// be the same bytes of the file. Throws Error(files) if together they have more than `max_bytes`,
/// or if HDF5 fails; `path` and `dataset` are for messages.
std::vector<std::string> read_texts(hid_t source, hsize_t max_bytes,
                                    const std::filesystem::path& path, const std::string& dataset);

}  // namespace kzero::storage
