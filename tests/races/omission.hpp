// A barrier or a single that a run leaves out, to see that it would be missed:
// KZERO_OMIT=FILE:LINE.
#pragma once

#include <cstdlib>
#include <source_location>
#include <string>

namespace kzero::races {

inline const char* const omission = std::getenv("KZERO_OMIT");

/// True if the run leaves out what is at this place.
inline bool omitted(const std::source_location& at) {
  if (omission == nullptr) return false;
  const std::string file = at.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(at.line()) == omission;
}

}  // namespace kzero::races
