// MPI's handle of a communicator without mpi.h. Each MPI library defines the type of its handles in
// its own way, as an int or as a pointer. Only sources that call MPI include its header, so a build
// with another MPI library compiles few objects of its own.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace kzero::grid {

/// Converts from an MPI_Comm and back, implicitly, as both name the same communicator.
class MpiHandle {
 public:
  template <class Handle>
  requires(std::same_as<Handle, int> || std::is_pointer_v<Handle>) MpiHandle(Handle handle) {
    static_assert(sizeof handle <= sizeof bits_);
    std::memcpy(&bits_, &handle, sizeof handle);
  }

  template <class Handle>
  requires(std::same_as<Handle, int> || std::is_pointer_v<Handle>) operator Handle() const {
    Handle handle;
    std::memcpy(&handle, &bits_, sizeof handle);
    return handle;
  }

 private:
  std::uintptr_t bits_ = 0;
};

}  // namespace kzero::grid
