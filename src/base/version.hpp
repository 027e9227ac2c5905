// Identity of this binary, for logs, checkpoints and `kzero --version`.
#pragma once

#include <string>

namespace kzero {

std::string version();
std::string git_hash();

/// The host's compiler and its version.
std::string compiler();

/// CMake's build type.
std::string build_type();

/// The path of the mpiexec that belongs to the build's MPI library; empty if none was found.
std::string mpi_launcher();

}  // namespace kzero
