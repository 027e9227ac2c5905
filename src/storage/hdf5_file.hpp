// HDF5 files: handles that close themselves, typed attributes and datasets, and every return code
// turned into Error(files) with the file's name and HDF5's own reason. It knows nothing of the
// meaning of the files. HDF5 itself writes to memory only: after a write or close that fails, HDF5
// 1.10 keeps a dangling identifier, on which it crashes when the program ends.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "storage/files.hpp"

namespace kzero::storage {

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
  /// Closes the identifier now and returns HDF5's status.
  herr_t release();

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Starts the library, which makes MPI calls, for a thread that will use HDF5 and may make none.
void start_hdf5();

/// One open file. Objects are named by their path in it ("/" is the root group). T is one of float,
/// double, Index, std::uint64_t, std::string.
class Hdf5File {
 public:
  /// Creates a new file in memory, for write_to(), one at a time; `path` is for messages. The first
  /// `user_block_bytes` (512 times a power of two) are left to the caller; with 0, large datasets
  /// are aligned.
  static Hdf5File create(const std::filesystem::path& path, Index user_block_bytes);
  /// Opens an existing file for reading.
  static Hdf5File open(const std::filesystem::path& path);
  /// Opens the bytes of a complete file for reading; `path` is for messages. Nothing in it may lead
  /// to another file.
  static Hdf5File open_image(const std::string& bytes, const std::filesystem::path& path);

  ~Hdf5File();
  Hdf5File(Hdf5File&& other) noexcept;
  Hdf5File& operator=(Hdf5File&&) = delete;

  /// Ends a new file: writes all of it but the values of reserved datasets to `file`. Returns the
  /// bytes of the complete file. Nothing else may be called after it.
  Index write_to(const OutputFile& file);

  void create_group(const std::string& group);

  template <class T>
  void set_attribute(const std::string& object, const std::string& name, const T& value);
  template <class T>
  void set_attribute(const std::string& object, const std::string& name,
                     const std::vector<T>& values);
  template <class T>
  T attribute(const std::string& object, const std::string& name) const;
  bool has_attribute(const std::string& object, const std::string& name) const {
    return H5Aexists_by_name(file_.id(), object.c_str(), name.c_str(), H5P_DEFAULT) > 0;
  }

  /// Writes a contiguous dataset of the given extents.
  template <class T>
  void write(const std::string& dataset, std::span<const T> values,
             const std::vector<Index>& extents);
  /// Reserves space in the file for a one-dimensional float dataset; the caller writes its values
  /// there.
  void reserve(const std::string& dataset, Index elements);

  /// Reads a full dataset in row-major order.
  template <class T>
  std::vector<T> read(const std::string& dataset) const;
  std::vector<Index> extents_of(const std::string& dataset) const;

  /// Returns the offset of a contiguous dataset's values, in bytes from the start of the file.
  Index offset_of(const std::string& dataset) const;

 private:
  class Memory;

  explicit Hdf5File(std::filesystem::path path);
  [[noreturn]] void give_up(const std::string& what) const;
  Hdf5Handle own(hid_t id, Hdf5Handle::Close closer, const std::string& what) const;
  void check(herr_t result, const std::string& what) const;
  void require_size_within_limit(Index more_bytes) const;
  Hdf5Handle open_dataset(const std::string& dataset) const;
  Hdf5Handle space_of(const std::vector<Index>& extents) const;
  template <class T>
  void put_attribute(const std::string& object, const std::string& name, std::span<const T> values,
                     const Hdf5Handle& space);

  std::filesystem::path path_;
  std::unique_ptr<Memory> memory_;  // of a new file
  std::vector<Region> reserved_;
  Hdf5Handle file_;  // closes before its memory is freed
};

}  // namespace kzero::storage
