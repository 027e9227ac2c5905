// Where an update is computed. It is apart from optimizer.hpp, which most of kzero includes for the
// names of state arrays, because it needs the headers of Kokkos.
#pragma once

#include <variant>

#include "tensor/view.hpp"

namespace kzero::optim {

/// Where a share's memory is and where its update is computed. On a device, work is enqueued. On
/// the host's cores, work is complete on return.
struct Place : std::variant<tensor::Execution, tensor::HostCores> {
  using variant::variant;
};

}  // namespace kzero::optim
