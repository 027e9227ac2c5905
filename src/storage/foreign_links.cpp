#include "storage/foreign_links.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::storage {

namespace {

bool keeps_its_values(hid_t group, const char* name) {
  const Hdf5Handle object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
  if (object.id() < 0) return false;
  if (H5Iget_type(object.id()) != H5I_DATASET) return true;
  const Hdf5Handle creation(H5Dget_create_plist(object.id()), H5Pclose);
  return creation.id() >= 0 && H5Pget_layout(creation.id()) != H5D_VIRTUAL &&
         H5Pget_external_count(creation.id()) == 0;
}

/// Stops at the first object that leads elsewhere, with its name in `found`.
extern "C" herr_t look_at_link(hid_t group, const char* name, const H5L_info_t* info, void* found) {
  if (info->type == H5L_TYPE_HARD && keeps_its_values(group, name)) return 0;
  *static_cast<std::string*>(found) = name;
  return 1;
}

}  // namespace

void require_no_foreign_links(hid_t file, const std::filesystem::path& path) {
  std::string found = "/";
  const herr_t result = H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, look_at_link, &found);
  KZERO_REQUIRE(result == 0, ExitCode::files,
                "{}: its object \"{}\" leads to another place or file, which no manifest does",
                path.string(), printable(found));
}

}  // namespace kzero::storage
