// A check of the compilers that built kzero and Kokkos for a device.
#pragma once

namespace kzero::runtime {

/// Throws Error(other) unless kernels find the pointer and the extents of a view where the host
/// puts them. nvcc 12.9 and newer can give members of a view other places than the host's compiler
/// does (kokkos/kokkos#8615): kernels then compute nothing, or write anywhere. Does nothing where
/// the host runs the kernels.
void require_equal_views();

}  // namespace kzero::runtime
