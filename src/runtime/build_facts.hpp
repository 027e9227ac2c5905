// Facts about this binary and the shared libraries of its process, for logs and for comparisons of
// runs and ranks.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kzero::runtime {

/// All that the kernels' rounding depends on: their compiler, the instruction set it compiled for,
/// and further instructions that they use if the processor has them.
std::string kernel_arithmetic();

/// Version, git hash, compiler, build type and device backend, in printing order.
std::vector<std::pair<std::string, std::string>> build_facts();

/// The name and version of the MPI library that this process loaded, as the library tells them.
/// That of the build may be another one with the same ABI.
std::string mpi_library();

struct LoadedLibrary {
  std::string name;   // of the file, without its folder; empty: the program itself
  std::string build;  // the build id that the linker wrote, in hexadecimal digits; empty: none
};

/// Returns the program and its libraries, sorted by name. Reads the process's own memory only.
std::vector<LoadedLibrary> loaded_libraries();

}  // namespace kzero::runtime
