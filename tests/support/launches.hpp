// Counts the launches of kernels in a test.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <string_view>

namespace kzero::tests {

/// Counts the launches of parallel_for, or of one kernel, while it exists. Only one may exist at a
/// time.
class Launches {
 public:
  explicit Launches(std::string_view kernel = {})
      : kernel_(kernel), others_(Kokkos::Tools::Experimental::get_callbacks()) {
    current_ = this;
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(&count_launch);
  }
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;
  ~Launches() { Kokkos::Tools::Experimental::set_callbacks(others_); }

  int count() const { return count_; }

 private:
  static void count_launch(const char* name, std::uint32_t device, std::uint64_t* id) {
    const std::string_view counted = current_->kernel_;
    if (counted.empty() || counted == name) ++current_->count_;
    const auto other = current_->others_.begin_parallel_for;
    if (other != nullptr) other(name, device, id);
  }

  inline static Launches* current_ = nullptr;

  std::string_view kernel_;                       // empty: all
  Kokkos::Tools::Experimental::EventSet others_;  // other callbacks, which are still called
  int count_ = 0;
};

}  // namespace kzero::tests
