// A file descriptor that is closed at the end of its scope.
#pragma once

#include <unistd.h>

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

}  // namespace kzero
