#include "kernels/documents.hpp"

#include <Kokkos_Core.hpp>

namespace kzero::kernels {

void window_of(const tensor::Execution& exec, const Documents& documents, Index window,
               Index sequence, const Vector<std::int32_t>& begin, const Vector<std::int32_t>& end) {
  const bool is_packed = !documents.empty();
  const std::int32_t* const first = is_packed ? documents.begin.data() : nullptr;
  const std::int32_t* const past = is_packed ? documents.end.data() : nullptr;
  const Vector<std::int32_t> sees_from = begin, seen_until = end;
  Kokkos::parallel_for(
      "kzero::kernels::window_of", tensor::Range(exec, 0, static_cast<Index>(begin.size())),
      KOKKOS_LAMBDA(Index i) {
        const Index row = i % sequence;
        const Index document = first == nullptr ? 0 : first[i];
        const Index document_end = past == nullptr ? sequence : past[i];
        sees_from(i) = static_cast<std::int32_t>(Kokkos::max(document, row - window + 1));
        seen_until(i) = static_cast<std::int32_t>(Kokkos::min(document_end, row + window));
      });
}

}  // namespace kzero::kernels
