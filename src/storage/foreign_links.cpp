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

/// A walk through the file's groups, and the object at which it stopped.
struct Walk {
  std::string folder{};  // the group that is walked through
  std::string found = "/";
  bool is_nested = false;
};

extern "C" herr_t look_at_link(hid_t group, const char* name, const H5L_info_t* info, void* data);

herr_t walk_through(hid_t group, Walk& walk) {
  return H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, look_at_link, &walk);
}

/// Stops at the first object that leads elsewhere, and at a group within a group of the root: HDF5
/// looks names up from the root, so the time for nested groups would grow with their square, and
/// groups may contain one another.
extern "C" herr_t look_at_link(hid_t group, const char* name, const H5L_info_t* info, void* data) {
  Walk& walk = *static_cast<Walk*>(data);
  walk.found = walk.folder + name;
  if (info->type != H5L_TYPE_HARD || !keeps_its_values(group, name)) return 1;
  const Hdf5Handle object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
  if (H5Iget_type(object.id()) != H5I_GROUP) return 0;
  walk.is_nested = !walk.folder.empty();
  if (walk.is_nested) return 1;
  walk.folder = walk.found + '/';
  const herr_t result = walk_through(object.id(), walk);
  walk.folder.clear();
  return result;
}

}  // namespace

void require_no_foreign_links(hid_t file, const std::filesystem::path& path) {
  Walk walk;
  const herr_t result = walk_through(file, walk);
  KZERO_REQUIRE(result == 0 || !walk.is_nested, ExitCode::files,
                "{}: its object \"{}\" is a group within a group, which no manifest has",
                path.string(), printable_start(walk.found));
  KZERO_REQUIRE(result == 0, ExitCode::files,
                "{}: its object \"{}\" leads to another place or file, which no manifest does",
                path.string(), printable_start(walk.found));
}

}  // namespace kzero::storage
