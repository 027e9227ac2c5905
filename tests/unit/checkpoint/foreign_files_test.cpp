// Nothing outside a checkpoint's folder is read, written or waited for.
#include <sys/stat.h>

#include <functional>
#include <sstream>

#include "base/input_file.hpp"
#include "storage/files.hpp"
#include "storage/hdf5_file.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

class ForeignFiles : public CheckpointTest {
 protected:
  ForeignFiles() : own(folder / std::to_string(world.rank())) { fs::create_directories(own); }

  /// The error message for an HDF5 file that `write` has filled, read as a manifest.
  std::string refusal(const std::function<void(hid_t)>& write) const {
    const fs::path path = own / "forged.h5";
    {
      const storage::Hdf5Handle file(
          H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
      write(file.id());
    }
    return error_of(ExitCode::files, [&] { storage::Hdf5File::open_image(load_file(path), path); });
  }

  fs::path own;
};

storage::Hdf5Handle four_values() {
  const hsize_t extent = 4;
  return {H5Screate_simple(1, &extent, nullptr), H5Sclose};
}

/// Writes a dataset in a group, described by `creation`.
void write_dataset(hid_t file, const storage::Hdf5Handle& creation) {
  const storage::Hdf5Handle group(
      H5Gcreate2(file, "state_shards", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  const storage::Hdf5Handle values(
      H5Dcreate2(group.id(), "runs", H5T_NATIVE_INT64, four_values().id(), H5P_DEFAULT,
                 creation.id(), H5P_DEFAULT),
      H5Dclose);
  ASSERT_GE(values.id(), 0);
}

TEST_F(ForeignFiles, AreNotLinkedToByManifests) {
  const std::vector<std::pair<const char*, std::function<void(hid_t)>>> forgeries{
      {"\"state_shards\"",
       [](hid_t file) {
         H5Lcreate_external("other.h5", "/state_shards", file, "state_shards", H5P_DEFAULT,
                            H5P_DEFAULT);
       }},
      {"\"state_shards\"",
       [](hid_t file) {
         H5Lcreate_soft("/elsewhere", file, "state_shards", H5P_DEFAULT, H5P_DEFAULT);
       }},
      {"\"state_shards/runs\"",
       [](hid_t file) {
         const storage::Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
         H5Pset_external(creation.id(), "/etc/passwd", 0, 32);
         write_dataset(file, creation);
       }},
      {"\"state_shards/runs\"", [](hid_t file) {
         const storage::Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
         H5Pset_virtual(creation.id(), four_values().id(), "other.h5", "/runs", four_values().id());
         write_dataset(file, creation);
       }}};
  for (const auto& [name, forgery] : forgeries) {
    const std::string text = refusal(forgery);
    EXPECT_TRUE(contains(text, fmt::format("its object {} leads to another", name))) << text;
  }
}

TEST_F(ForeignFiles, PipesAndDevicesAreRefused) {
  const fs::path pipe = own / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, fs::path("/dev/zero"), own}) {
    const std::string text = error_of(ExitCode::files, [&] { load_file(path); });
    EXPECT_TRUE(contains(text, "not a regular file")) << text;
  }
}

TEST_F(ForeignFiles, AreNotWrittenThroughLinks) {
  const fs::path victim = own / "victim", path = own / "latest";
  std::ofstream(victim) << "precious";
  fs::create_symlink(victim, own / "latest.partial");
  fs::create_symlink(victim, path);
  storage::write_durably(path, "new");
  std::stringstream text;
  text << std::ifstream(victim).rdbuf();
  EXPECT_EQ(text.str(), "precious");
  EXPECT_EQ(load_file(path), "new");
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_FALSE(fs::exists(own / "latest.partial"));
}

}  // namespace

}  // namespace kzero::checkpoint
