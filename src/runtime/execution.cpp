#include "runtime/execution.hpp"

namespace kzero::runtime {

Execution make_stream() {
  if constexpr (on_host) {
    return {};
  } else {
    return Kokkos::Experimental::partition_space(Execution(), 1)[0];
  }
}

}  // namespace kzero::runtime
