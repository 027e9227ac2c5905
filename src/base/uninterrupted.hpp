// System calls that a signal's handler may interrupt.
#pragma once

#include <cerrno>

namespace kzero {

/// Repeats a system call until it is not interrupted by a signal, and returns its result; errno is
/// the last call's. `call` has no arguments, returns a negative number on failure and sets errno.
/// Do not use it for close(): after an interrupted close() the descriptor may already belong to
/// another file.
template <class Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace kzero
