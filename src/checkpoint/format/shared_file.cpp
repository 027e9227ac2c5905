#include "checkpoint/format/shared_file.hpp"

#include <utility>

#include "base/error.hpp"

namespace kzero::checkpoint {

SharedFile::SharedFile(const grid::Group& group, const std::filesystem::path& path)
    : group_(group), path_(path.string()) {
  keep(MPI_File_open(group.handle(), path.c_str(), MPI_MODE_WRONLY, MPI_INFO_NULL, &file_),
       "cannot be opened by several ranks");
  agree();
}

SharedFile::~SharedFile() {
  if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
}

void SharedFile::close() {
  MPI_File file = std::exchange(file_, MPI_FILE_NULL);  // a failed close leaves nothing to close
  keep(MPI_File_close(&file), "cannot be closed");
  agree();
}

void SharedFile::write(Index offset, std::span<const float> values) {
  MPI_Status status;
  const int count = static_cast<int>(values.size());
  keep(MPI_File_write_at_all(file_, offset, values.data(), count, MPI_FLOAT, &status),
       "cannot be written");
}

void SharedFile::agree() const { group_.agree(problem_, static_cast<int>(ExitCode::files)); }

void SharedFile::keep(int result, const char* what) {
  if (result == MPI_SUCCESS || !problem_.empty()) return;
  char reason[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, reason, &length);
  // MPICH puts most information into the last of several lines.
  std::string text(reason, length);
  while (text.ends_with('\n')) text.pop_back();
  problem_ = fmt::format("{}: {} ({})", path_, what, text.substr(text.rfind('\n') + 1));
}

}  // namespace kzero::checkpoint
