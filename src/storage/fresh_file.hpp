// Creates files that no other user has open. Whoever may write to a folder can put a file where one
// is about to be written, and would keep it open.
#pragma once

#include <filesystem>

namespace kzero::storage {

enum class FileLock { none, exclusive };

/// Creates the file and returns its descriptor, open for writing. A file or link of that name is
/// replaced if this user made it, as a killed process does. One of another user, a file with
/// several names (hard links), and anything else is an error. With FileLock::exclusive the file is
/// locked (flock), and a file that another process has locked is an error, too. Throws
/// Error(files).
int create_fresh(const std::filesystem::path& path, FileLock lock);

}  // namespace kzero::storage
