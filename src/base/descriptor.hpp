// A file descriptor that is closed at the end of its scope.
#pragma once

#include <unistd.h>

#include <cerrno>

namespace kzero {

class Descriptor {
 public:
  /// Takes ownership of what open() returned. A negative number means that open() failed, and is
  /// not closed.
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

// System calls that a signal's handler may interrupt.

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
