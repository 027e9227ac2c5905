// The threads of a process take turns in MPI, which is initialized for MPI_THREAD_SERIALIZED.
#pragma once

#include <mutex>

namespace kzero::grid {

/// The lock that a thread holds during an MPI call while another thread's messages may be in
/// flight. A blocking call keeps it until it returns, and moves the other thread's messages on.
std::recursive_mutex& turn();

}  // namespace kzero::grid
