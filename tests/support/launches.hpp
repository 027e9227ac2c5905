// Counts the launches of kernels in a test.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

namespace kzero::tests {

/// Counts the launches of parallel_for while it exists. Only one may exist at a time.
class Launches {
 public:
  Launches() : others_(Kokkos::Tools::Experimental::get_callbacks()) {
    current_ = this;
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(&count_launch);
  }
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;
  ~Launches() { Kokkos::Tools::Experimental::set_callbacks(others_); }

  int count() const { return count_; }

 private:
  static void count_launch(const char* name, std::uint32_t device, std::uint64_t* id) {
    ++current_->count_;
    const auto other = current_->others_.begin_parallel_for;
    if (other != nullptr) other(name, device, id);
  }

  inline static Launches* current_ = nullptr;

  Kokkos::Tools::Experimental::EventSet others_;  // other callbacks, which are still called
  int count_ = 0;
};

}  // namespace kzero::tests
