// HDF5 files: handles that close themselves, typed attributes and datasets, and every return code
// turned into Error(files) with the file's name and HDF5's own reason. Knows nothing of what the
// files mean.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::checkpoint {

/// Owns one HDF5 identifier.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  ~Hdf5Handle() { release(); }
  Hdf5Handle(Hdf5Handle&& other) noexcept;
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;

  hid_t id() const { return id_; }
  /// Closes now; what HDF5 says of it.
  herr_t release();

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Starts the library, which makes MPI calls: for a thread that is to use it and may make none.
void start_hdf5();

/// One open file. Objects are named by their path in it ("/" is the root group). T is one of float,
/// double, Index, std::uint64_t, std::string.
class Hdf5File {
 public:
  /// A new file, replacing what was there. The first `user_block_bytes` (512 times a power of two)
  /// are left to the caller; with 0, large datasets are aligned.
  static Hdf5File create(const std::filesystem::path& path, Index user_block_bytes);
  /// An existing file, for reading.
  static Hdf5File open(const std::filesystem::path& path);
  /// The bytes of a whole file, for reading; `path` is for messages.
  static Hdf5File open_image(const std::string& bytes, const std::filesystem::path& path);

  /// A file that is being written and was not closed is abandoned: its contents are undefined.
  ~Hdf5File() { divert(); }
  Hdf5File(Hdf5File&&) = default;
  Hdf5File& operator=(Hdf5File&&) = delete;

  /// Writes what is still buffered. A file that was written is good only if this returned.
  void close();

  void create_group(const std::string& group);

  template <class T>
  void set_attribute(const std::string& object, const std::string& name, const T& value);
  template <class T>
  void set_attribute(const std::string& object, const std::string& name,
                     const std::vector<T>& values);
  template <class T>
  T attribute(const std::string& object, const std::string& name) const;

  /// A contiguous dataset of the given extents.
  template <class T>
  void write(const std::string& dataset, std::span<const T> values,
             const std::vector<Index>& extents);
  /// A one-dimensional float dataset that has its place in the file and no values yet.
  void reserve(const std::string& dataset, Index elements);

  /// A whole dataset in row-major order.
  template <class T>
  std::vector<T> read(const std::string& dataset) const;
  std::vector<Index> extents_of(const std::string& dataset) const;

  /// Where the values of a contiguous dataset begin, in bytes from the start of the file.
  Index offset_of(const std::string& dataset) const;

 private:
  Hdf5File(Hdf5Handle file, std::filesystem::path path);
  int descriptor() const;
  void divert() const;
  [[noreturn]] void give_up(const std::string& what) const;
  Hdf5Handle own(hid_t id, Hdf5Handle::Close closer, const std::string& what) const;
  void check(herr_t result, const std::string& what) const;
  Hdf5Handle open_dataset(const std::string& dataset) const;
  Hdf5Handle space_of(const std::vector<Index>& extents) const;
  std::size_t count_of(const Hdf5Handle& space, const std::string& what) const;
  template <class T>
  void put_attribute(const std::string& object, const std::string& name, std::span<const T> values,
                     const Hdf5Handle& space);

  Hdf5Handle file_;
  std::filesystem::path path_;
  mutable bool writing_ = false;  // HDF5 may still have something for the disk
};

}  // namespace kzero::checkpoint
