// Regions of a run for Kokkos' profiling tools, beside the kernels that these see by themselves.
#pragma once

#include <Kokkos_Core.hpp>

namespace kzero::runtime {

/// A region from construction to destruction, under the text that name() returns. Without a tool
/// name() is not called.
class ProfileRegion {
 public:
  template <class F>
  explicit ProfileRegion(const F& name) : is_open_(Kokkos::Tools::profileLibraryLoaded()) {
    if (is_open_) Kokkos::Profiling::pushRegion(name());
  }
  ~ProfileRegion() {
    if (is_open_) Kokkos::Profiling::popRegion();
  }
  ProfileRegion(const ProfileRegion&) = delete;
  ProfileRegion& operator=(const ProfileRegion&) = delete;

 private:
  bool is_open_;
};

}  // namespace kzero::runtime
