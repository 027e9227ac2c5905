// The shared libraries of this process, identified by their code.
#pragma once

#include <string>
#include <vector>

namespace kzero::runtime {

struct LoadedLibrary {
  std::string name;   // of the file, without its folder; empty: the program itself
  std::string build;  // the build id that the linker wrote, in hexadecimal digits; empty: none
};

/// Returns the program and its libraries, sorted by name. Reads the process's own memory only.
std::vector<LoadedLibrary> loaded_libraries();

}  // namespace kzero::runtime
