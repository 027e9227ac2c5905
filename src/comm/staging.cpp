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
#ifdef MPIX_GPU_SUPPORT_CUDA  // MPICH since 4.0; its query covers the device types it was
                              // built for
  const std::string device = Execution::name();
  const int kind = device == "Cuda"   ? MPIX_GPU_SUPPORT_CUDA
                   : device == "HIP"  ? MPIX_GPU_SUPPORT_HIP
                   : device == "SYCL" ? MPIX_GPU_SUPPORT_ZE
                                      : -1;
  if (kind >= 0) MPIX_GPU_query_support(kind, &reaches);
#endif
  return reaches ? Reach::device : Reach::host;
}

Staging::Staging(Index bytes)
    : stream_(runtime::make_stream()),
      out_("kzero::comm::host_chunk_out", static_cast<std::size_t>(bytes)),
      in_("kzero::comm::host_chunk_in", static_cast<std::size_t>(bytes)) {}

ConstSpan Staging::bring(const ConstSpan& chunk) {
  Kokkos::deep_copy(stream_, Kokkos::subview(out_, first(chunk.bytes())), bytes_of(chunk));
  stream_.fence("kzero::comm::chunk_on_host");
  return {out_.data(), chunk.elements, chunk.dtype};
}

Span Staging::room(const Span& chunk) const { return {in_.data(), chunk.elements, chunk.dtype}; }

void Staging::take(const Span& chunk) {
  Kokkos::deep_copy(stream_, bytes_of(chunk), Kokkos::subview(in_, first(chunk.bytes())));
  stream_.fence("kzero::comm::chunk_on_device");
}

}  // namespace kzero::comm
