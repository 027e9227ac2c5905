#include "comm/staging.hpp"

#include <mpi.h>

#include "comm/byte_view.hpp"

namespace kzero::comm {

namespace {

auto first(Index bytes) {
  return Kokkos::make_pair(std::size_t{0}, static_cast<std::size_t>(bytes));
}

}  // namespace

Reach mpi_reach() {
  if constexpr (runtime::on_host) return Reach::device;
  int reaches = 0;
#ifdef MPIX_GPU_SUPPORT_CUDA  // MPICH since 4.0; its enquiry covers the device types it was built
                              // for
  const std::string device = Execution::name();
  const int kind = device == "Cuda"   ? MPIX_GPU_SUPPORT_CUDA
                   : device == "HIP"  ? MPIX_GPU_SUPPORT_HIP
                   : device == "SYCL" ? MPIX_GPU_SUPPORT_ZE
                                      : -1;
  if (kind >= 0) MPIX_GPU_query_support(kind, &reaches);
#endif
  return reaches ? Reach::device : Reach::host;
}

Staging::Staging(Index piece_bytes)
    : queue_(runtime::make_queue()),
      out_("kzero::comm::host_piece_out", static_cast<std::size_t>(piece_bytes)),
      in_("kzero::comm::host_piece_in", static_cast<std::size_t>(piece_bytes)) {}

ConstSpan Staging::bring(const ConstSpan& piece) {
  Kokkos::deep_copy(queue_, Kokkos::subview(out_, first(piece.bytes())), bytes_of(piece));
  queue_.fence("kzero::comm::piece_on_host");
  return {out_.data(), piece.elements, piece.dtype};
}

Span Staging::room(const Span& piece) const { return {in_.data(), piece.elements, piece.dtype}; }

void Staging::take(const Span& piece) {
  Kokkos::deep_copy(queue_, bytes_of(piece), Kokkos::subview(in_, first(piece.bytes())));
  queue_.fence("kzero::comm::piece_on_device");
}

}  // namespace kzero::comm
