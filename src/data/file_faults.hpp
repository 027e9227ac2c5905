// Faults that data files of every format may have.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/types.hpp"

namespace kzero::data {

/// Describes why a file could not be opened, with advice; `problem` is errno.
std::string reason_of(int problem, const std::string& path);

/// Throws Error(files) unless the mode is that of a regular file.
void require_regular(const std::string& path, mode_t mode);

/// Advice for a file whose largest token is `most`, beyond the vocabulary.
std::string vocabulary_advice(Index most);

}  // namespace kzero::data
