// A file that several ranks write at once through MPI-IO, at offsets that are fixed in advance.
// HDF5's collective transfer (1.10) is not used, because the other ranks wait for ever if one
// rank's write fails.
#pragma once

#include <mpi.h>

#include <filesystem>
#include <span>
#include <string>

#include "base/types.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

class SharedFile {
 public:
  /// Opens an existing file. Throws the same Error(files) on every rank. Collective over `group`,
  /// which must outlive the object.
  SharedFile(const grid::Group& group, const std::filesystem::path& path);
  /// Collective over the group, unless close() was called.
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  /// Writes the values, less than 2 GiB, at an offset of the file. There may be none. Keeps errors
  /// for close(), so that the other ranks' calls find their partner. Collective over the group.
  void write(Index offset, std::span<const float> values);

  /// Throws the same Error(files) on every rank if a write or the close failed on any. Collective
  /// over the group.
  void close();

 private:
  void agree() const;
  void keep(int result, const char* what);

  const grid::Group& group_;
  std::string path_;
  std::string problem_;  // the first problem
  MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace kzero::checkpoint
