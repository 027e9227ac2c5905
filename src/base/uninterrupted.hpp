// System calls that a signal's handler may interrupt.
#pragma once

#include <cerrno>

namespace kzero {

/// Makes a system call until no signal interrupts it, and returns its result; errno is the call's.
/// `call` takes nothing, returns a negative number on failure and leaves the reason in errno. Not
/// for close(), after which the descriptor may be another's.
template <class Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace kzero
