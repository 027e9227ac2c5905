#include "storage/hdf5_file.hpp"

#include <hdf5.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "storage/hdf5_texts.hpp"

namespace kzero::storage {

namespace {

// Checks that an HDF5 file is self-contained: links and datasets may lead to other files, which a
// foreign manifest must not make anybody read.

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

/// Throws Error(files) for the first object of the open file that leads out of it or is reached by
/// no plain link: an external, soft or user-defined link, a dataset with external storage or a
/// virtual one. Groups may be in the root only. Call it before anything is opened by name; `path`
/// is for messages.
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

constexpr hsize_t alignment_threshold = hsize_t{1} << 16;  // small tensors stay packed
constexpr hsize_t alignment = 4096;
constexpr std::size_t copy_bytes = std::size_t{1} << 18;

/// An upper bound of what may follow the last values in a file.
constexpr Index tail_bytes = Index{1} << 16;

extern "C" herr_t keep_first_reason(unsigned depth, const H5E_error2_t* entry, void* text) {
  if (depth == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

/// Returns the innermost entry of HDF5's error stack, which is the cause; the operating system's
/// message if it has any.
std::string reason() {
  std::string text = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first_reason, &text);
  constexpr std::string_view mark = "error message = '";
  if (const auto begin = text.find(mark); begin != std::string::npos) {
    text = text.substr(begin + mark.size());
    text.resize(std::min(text.size(), text.find('\'')));
  }
  return text;
}

/// Silences HDF5's error stack, which it keeps per thread and prints unless told not to.
void silence_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

template <class T>
Hdf5Handle type_of() {
  if constexpr (std::is_same_v<T, std::string>) return text_type();
  const hid_t native = std::is_same_v<T, float>    ? H5T_NATIVE_FLOAT
                       : std::is_same_v<T, double> ? H5T_NATIVE_DOUBLE
                       : std::is_same_v<T, Index>  ? H5T_NATIVE_INT64
                                                   : H5T_NATIVE_UINT64;
  return {H5Tcopy(native), H5Tclose};
}

/// Makes the written bytes depend on the values alone.
Hdf5Handle without_times(hid_t list) {
  Hdf5Handle creation(H5Pcreate(list), H5Pclose);
  H5Pset_obj_track_times(creation.id(), false);
  return creation;
}

/// Calls write(pointer) with the values as HDF5 takes them.
template <class T, class F>
herr_t with_values(std::span<const T> values, F&& write) {
  if constexpr (std::is_same_v<T, std::string>) {
    std::vector<const char*> pointers;
    for (const std::string& value : values) pointers.push_back(value.c_str());
    return write(pointers.data());
  } else {
    return write(values.data());
  }
}

/// The bytes that a value takes in a file, at least.
template <class T>
constexpr hsize_t stored_bytes = std::is_same_v<T, std::string> ? text_reference_bytes : sizeof(T);

}  // namespace

void start_hdf5() { H5open(); }

Hdf5Handle::Hdf5Handle(Hdf5Handle&& other) noexcept
    : id_(std::exchange(other.id_, -1)), close_(other.close_) {}

Hdf5Handle& Hdf5Handle::operator=(Hdf5Handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

herr_t Hdf5Handle::release() { return id_ < 0 ? 0 : close_(std::exchange(id_, -1)); }

/// The bytes of a file in memory. Reserved values are holes, which take no memory.
class Hdf5File::Memory {
 public:
  explicit Memory(const std::filesystem::path& purpose) : id_(memfd_create("kzero", MFD_CLOEXEC)) {
    KZERO_REQUIRE(id_ >= 0, ExitCode::files, "{}: cannot be set up in memory ({})",
                  purpose.string(), std::strerror(errno));
  }
  ~Memory() { ::close(id_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", id_); }
  bool take_place_of(int descriptor) const { return dup2(id_, descriptor) >= 0; }

 private:
  int id_;
};

Hdf5File::Hdf5File(std::filesystem::path path) : path_(std::move(path)) {}
Hdf5File::~Hdf5File() = default;
Hdf5File::Hdf5File(Hdf5File&& other) noexcept = default;

void Hdf5File::give_up(const std::string& what) const {
  fail(ExitCode::files, "{}: {} ({})", path_.string(), what, reason());
}

void Hdf5File::check(herr_t result, const std::string& what) const {
  if (result < 0) give_up(what);
}

Hdf5Handle Hdf5File::own(hid_t id, Hdf5Handle::Close closer, const std::string& what) const {
  if (id < 0) give_up(what);
  return {id, closer};
}

Hdf5File Hdf5File::create(const std::filesystem::path& path, Index user_block_bytes) {
  silence_hdf5();
  Hdf5File result(path);
  const std::string what = "cannot be set up for writing";
  const Hdf5Handle access = result.own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, what);
  const Hdf5Handle creation = result.own(H5Pcreate(H5P_FILE_CREATE), H5Pclose, what);
  // This layout stores groups compactly, and opening it for writing writes nothing. Many parallel
  // file systems refuse locks, and a checkpoint has one writer at a time anyway.
  result.check(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18), what);
  result.check(H5Pset_obj_track_times(creation.id(), false), what);
  result.check(H5Pset_file_locking(access.id(), false, true), what);
  // HDF5 supports either a user block or alignment.
  result.check(user_block_bytes > 0
                   ? H5Pset_userblock(creation.id(), static_cast<hsize_t>(user_block_bytes))
                   : H5Pset_alignment(access.id(), alignment_threshold, alignment),
               what);
  // All metadata stays in HDF5's cache until the file is closed.
  H5AC_cache_config_t cache{};
  cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  result.check(H5Pget_mdc_config(access.id(), &cache), what);
  cache.incr_mode = H5C_incr__off;
  cache.flash_incr_mode = H5C_flash_incr__off;
  cache.decr_mode = H5C_decr__off;
  cache.evictions_enabled = false;
  result.check(H5Pset_mdc_config(access.id(), &cache), what);
  result.memory_ = std::make_unique<Memory>(path);
  // HDF5 opens no file by its descriptor, but allows replacing it.
  result.file_ =
      result.own(H5Fcreate("/dev/null", H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose, what);
  void* handle = nullptr;
  result.check(H5Fget_vfd_handle(result.file_.id(), H5P_DEFAULT, &handle), what);
  KZERO_REQUIRE(result.memory_->take_place_of(*static_cast<int*>(handle)), ExitCode::files,
                "{}: {} ({})", path.string(), what, std::strerror(errno));
  return result;
}

Hdf5File Hdf5File::open(const std::filesystem::path& path) {
  silence_hdf5();
  Hdf5File result(path);
  const Hdf5Handle access = result.own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "cannot be set up");
  result.check(H5Pset_file_locking(access.id(), false, true), "cannot be set up");
  result.file_ = result.own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose,
                            "cannot be opened as an HDF5 file");
  return result;
}

Hdf5File Hdf5File::open_image(const std::string& bytes, const std::filesystem::path& path) {
  silence_hdf5();
  Hdf5File result(path);
  const std::string what = "cannot be opened as an HDF5 file";
  const Hdf5Handle access = result.own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, what);
  result.check(H5Pset_fapl_core(access.id(), std::size_t{1} << 20, false), what);
  // HDF5 copies the image and asks for a pointer to writable bytes nevertheless.
  result.check(H5Pset_file_image(access.id(), const_cast<char*>(bytes.data()), bytes.size()), what);
  const std::string name = path.string() + " in memory";  // no file may have it
  result.file_ = result.own(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose, what);
  require_no_foreign_links(result.file_.id(), path);
  return result;
}

Index Hdf5File::write_to(const OutputFile& file) {
  check(file_.release(), "cannot be closed");
  const InputFile written(memory_->path());
  const Index bytes = written.bytes();
  std::vector<std::byte> buffer(copy_bytes);
  for (const Region& gap : gaps_between(reserved_, bytes)) {
    const Index end = gap.offset + gap.bytes;
    for (Index at = gap.offset; at < end;) {
      const auto part = std::span(buffer).first(std::min(end - at, std::ssize(buffer)));
      KZERO_REQUIRE(written.read(at, part) == std::ssize(part), ExitCode::files,
                    "{}: cannot be read from memory", path_.string());
      file.write(at, part);
      at += std::ssize(part);
    }
  }
  return bytes;
}

void Hdf5File::create_group(const std::string& group) {
  const std::string what = "cannot write group " + group;
  const Hdf5Handle creation = without_times(H5P_GROUP_CREATE);
  Hdf5Handle handle =
      own(H5Gcreate2(file_.id(), group.c_str(), H5P_DEFAULT, creation.id(), H5P_DEFAULT), H5Gclose,
          what);
  check(handle.release(), what);
}

Hdf5Handle Hdf5File::space_of(const std::vector<Index>& extents) const {
  const std::vector<hsize_t> sizes(extents.begin(), extents.end());
  return own(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), H5Sclose,
             "cannot describe a dataset");
}

Hdf5Handle Hdf5File::open_dataset(const std::string& dataset) const {
  return own(H5Dopen2(file_.id(), dataset.c_str(), H5P_DEFAULT), H5Dclose,
             "has no readable dataset " + dataset);
}

template <class T>
void Hdf5File::set_attribute(const std::string& object, const std::string& name, const T& value) {
  put_attribute(object, name, std::span<const T>(&value, 1),
                own(H5Screate(H5S_SCALAR), H5Sclose, "cannot describe attribute " + name));
}

template <class T>
void Hdf5File::set_attribute(const std::string& object, const std::string& name,
                             const std::vector<T>& values) {
  put_attribute(object, name, std::span<const T>(values),
                space_of({static_cast<Index>(values.size())}));
}

template <class T>
void Hdf5File::put_attribute(const std::string& object, const std::string& name,
                             std::span<const T> values, const Hdf5Handle& space) {
  const std::string what = "cannot write attribute " + name + " of " + object;
  const Hdf5Handle type = type_of<T>();
  const Hdf5Handle owner = own(H5Oopen(file_.id(), object.c_str(), H5P_DEFAULT), H5Oclose, what);
  Hdf5Handle target =
      own(H5Acreate2(owner.id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
          H5Aclose, what);
  check(
      with_values(values, [&](const void* data) { return H5Awrite(target.id(), type.id(), data); }),
      what);
  check(target.release(), what);
}

template <class T>
T Hdf5File::attribute(const std::string& object, const std::string& name) const {
  const std::string what = "has no readable attribute " + name + " of " + object;
  const Hdf5Handle type = type_of<T>();
  const Hdf5Handle source =
      own(H5Aopen_by_name(file_.id(), object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
          H5Aclose, what);
  const Hdf5Handle space = own(H5Aget_space(source.id()), H5Sclose, what);
  const auto count = H5Sget_simple_extent_npoints(space.id());
  KZERO_REQUIRE(count == 1, ExitCode::files, "{}: {} (it has {} values, not one)", path_.string(),
                what, count);
  T value{};
  if constexpr (std::is_same_v<T, std::string>) {
    if (!read_text(source.id(), value)) give_up(what);
  } else {
    check(H5Aread(source.id(), type.id(), &value), what);
  }
  return value;
}

template <class T>
void Hdf5File::write(const std::string& dataset, std::span<const T> values,
                     const std::vector<Index>& extents) {
  const std::string what = "cannot write dataset " + dataset;
  const Hdf5Handle type = type_of<T>();
  const Hdf5Handle space = space_of(extents);
  KZERO_EXPECT(H5Sget_simple_extent_npoints(space.id()) == static_cast<Index>(values.size()));
  const Hdf5Handle creation = without_times(H5P_DATASET_CREATE);
  Hdf5Handle target = own(H5Dcreate2(file_.id(), dataset.c_str(), type.id(), space.id(),
                                     H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                          H5Dclose, what);
  check(with_values(values,
                    [&](const void* data) {
                      return H5Dwrite(target.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
                    }),
        what);
  check(target.release(), what);
}

/// The limit holds for memory too; beyond it HDF5 could not even release the file.
void Hdf5File::require_size_within_limit(Index more_bytes) const {
  hsize_t bytes = 0;
  check(H5Fget_filesize(file_.id(), &bytes), "has no size");
  const auto wanted = static_cast<Index>(bytes) + more_bytes + tail_bytes;
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  KZERO_REQUIRE(std::cmp_less_equal(wanted, limit.rlim_cur), ExitCode::files,
                "{}: needs {} bytes or more, but this process may write files of {} bytes at most "
                "(ulimit -f)",
                path_.string(), wanted, limit.rlim_cur);
}

void Hdf5File::reserve(const std::string& dataset, Index elements) {
  const std::string what = "cannot reserve dataset " + dataset;
  const Index bytes = elements * static_cast<Index>(sizeof(float));
  require_size_within_limit(bytes);
  const Hdf5Handle creation = without_times(H5P_DATASET_CREATE);
  check(H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY), what);
  check(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), what);
  Hdf5Handle target =
      own(H5Dcreate2(file_.id(), dataset.c_str(), H5T_NATIVE_FLOAT, space_of({elements}).id(),
                     H5P_DEFAULT, creation.id(), H5P_DEFAULT),
          H5Dclose, what);
  check(target.release(), what);
  reserved_.push_back({offset_of(dataset), bytes});
}

template <class T>
std::vector<T> Hdf5File::read(const std::string& dataset) const {
  const Hdf5Handle type = type_of<T>();
  const Hdf5Handle source = open_dataset(dataset);
  const Hdf5Handle space =
      own(H5Dget_space(source.id()), H5Sclose, "has no extents for " + dataset);
  const std::string what = "cannot read dataset " + dataset;
  hsize_t bytes = 0;
  check(H5Fget_filesize(file_.id(), &bytes), what);
  const auto count = H5Sget_simple_extent_npoints(space.id());
  // A file has no more values than bytes, whatever its extents say: no memory is taken before.
  KZERO_REQUIRE(count >= 0 && std::cmp_less_equal(count, bytes / stored_bytes<T>), ExitCode::files,
                "{}: {} (it names {} values in {} bytes)", path_.string(), what, count, bytes);
  if constexpr (std::is_same_v<T, std::string>) {
    return read_texts(source.id(), bytes, path_, dataset);
  } else {
    std::vector<T> values(static_cast<std::size_t>(count));
    check(H5Dread(source.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), what);
    return values;
  }
}

std::vector<Index> Hdf5File::extents_of(const std::string& dataset) const {
  const std::string what = "has no extents for dataset " + dataset;
  const Hdf5Handle source = open_dataset(dataset);
  const Hdf5Handle space = own(H5Dget_space(source.id()), H5Sclose, what);
  const int dims = H5Sget_simple_extent_ndims(space.id());
  check(dims, what);
  std::vector<hsize_t> extents(static_cast<std::size_t>(dims));
  check(H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr), what);
  return {extents.begin(), extents.end()};
}

Index Hdf5File::offset_of(const std::string& dataset) const {
  const Hdf5Handle source = open_dataset(dataset);
  const haddr_t offset = H5Dget_offset(source.id());
  KZERO_REQUIRE(offset != HADDR_UNDEF, ExitCode::files,
                "{}: dataset {} has no place in the file ({})", path_.string(), dataset, reason());
  return static_cast<Index>(offset);
}

#define KZERO_INSTANTIATE(T)                                                               \
  template void Hdf5File::set_attribute(const std::string&, const std::string&, const T&); \
  template void Hdf5File::set_attribute(const std::string&, const std::string&,            \
                                        const std::vector<T>&);                            \
  template T Hdf5File::attribute(const std::string&, const std::string&) const;            \
  template void Hdf5File::write(const std::string&, std::span<const T>,                    \
                                const std::vector<Index>&);                                \
  template std::vector<T> Hdf5File::read(const std::string&) const;
KZERO_INSTANTIATE(float)
KZERO_INSTANTIATE(double)
KZERO_INSTANTIATE(Index)
KZERO_INSTANTIATE(std::uint64_t)
KZERO_INSTANTIATE(std::string)
#undef KZERO_INSTANTIATE

}  // namespace kzero::storage
