#include "storage/hdf5_texts.hpp"

#include "base/error.hpp"

namespace kzero::storage {

namespace {

/// Calls read(pointer) for one text. Returns false if HDF5 fails.
template <class F>
bool take_text(std::string& text, F&& read) {
  char* memory = nullptr;
  if (read(&memory) < 0) return false;
  if (memory != nullptr) text = memory;
  const Hdf5Handle one(H5Screate(H5S_SCALAR), H5Sclose);
  return H5Dvlen_reclaim(text_type().id(), one.id(), H5P_DEFAULT, &memory) >= 0;
}

}  // namespace

Hdf5Handle text_type() {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), H5T_VARIABLE);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  return type;
}

bool read_text(hid_t attribute, std::string& text) {
  const Hdf5Handle type = text_type();
  return take_text(text, [&](char** memory) { return H5Aread(attribute, type.id(), memory); });
}

std::vector<std::string> read_texts(hid_t source, hsize_t max_bytes,
                                    const std::filesystem::path& path, const std::string& dataset) {
  const Hdf5Handle type = text_type(), space(H5Dget_space(source), H5Sclose),
                   one(H5Screate(H5S_SCALAR), H5Sclose);
  const int dimensions = H5Sget_simple_extent_ndims(space.id());
  const auto count = static_cast<hsize_t>(H5Sget_simple_extent_npoints(space.id()));
  std::vector<std::string> texts;
  hsize_t bytes = 0;
  for (hsize_t i = 0; i < count; ++i) {
    std::string& text = texts.emplace_back();
    const bool is_read =
        dimensions <= 1 &&
        (dimensions == 0 || H5Sselect_elements(space.id(), H5S_SELECT_SET, 1, &i) >= 0) &&
        take_text(text, [&](char** memory) {
          return H5Dread(source, type.id(), one.id(), space.id(), H5P_DEFAULT, memory);
        });
    KZERO_REQUIRE(is_read, ExitCode::files, "{}: cannot read text {} of dataset {}", path.string(),
                  i, dataset);
    bytes += text.size();
    KZERO_REQUIRE(bytes <= max_bytes, ExitCode::files,
                  "{}: the first {} texts of dataset {} have {} bytes, more than the file",
                  path.string(), i + 1, dataset, bytes);
  }
  return texts;
}

}  // namespace kzero::storage
