#include "base/version.hpp"

#include "version_info.hpp"

namespace kzero {

std::string version() { return KZERO_VERSION; }
std::string git_hash() { return KZERO_GIT_HASH; }
std::string compiler() { return KZERO_COMPILER; }
std::string build_type() { return KZERO_BUILD_TYPE; }
std::string mpi_launcher() { return KZERO_MPI_LAUNCHER; }

}  // namespace kzero
