// One message of more than 2^31 bytes. It needs 4.4 GiB on the node, so its own CTest entry runs it
// alone.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "comm/backends.hpp"
#include "comm/communicator.hpp"
#include "grid/process_grid.hpp"

namespace kzero::comm {
namespace {

Index available_bytes() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  for (Index kib = 0; in >> key; in.ignore(1000, '\n')) {
    if (key == "MemAvailable:" && in >> kib) return kib * 1024;
  }
  return 0;
}

// 32-bit words, sent as fp32. They are only copied.
using Words = Kokkos::View<std::uint32_t*, runtime::Memory>;

KOKKOS_INLINE_FUNCTION std::uint32_t value_of(Index i) {
  return static_cast<std::uint32_t>(i) * 2654435761U;
}

Words words_in_order(Index count) {
  const Words words("kzero::tests::sent", static_cast<std::size_t>(count));
  Kokkos::parallel_for(
      "kzero::tests::fill", Kokkos::RangePolicy<Execution, Kokkos::IndexType<Index>>(0, count),
      KOKKOS_LAMBDA(const Index i) { words(i) = value_of(i); });
  return words;
}

Index wrong_in(const Words& words) {
  Index wrong = 0;
  Kokkos::parallel_reduce(
      "kzero::tests::compare",
      Kokkos::RangePolicy<Execution, Kokkos::IndexType<Index>>(0, static_cast<Index>(words.size())),
      KOKKOS_LAMBDA(const Index i, Index& sum) { sum += words(i) != value_of(i); }, wrong);
  return wrong;
}

TEST(LargeMessage, DISABLED_OfMoreThan2GiBArrivesWhole) {
  const grid::Group group = grid::world_group();
  ASSERT_EQ(group.size(), 2);
  if (group.min(available_bytes()) < Index{10} << 30) GTEST_SKIP() << "needs 10 GiB of free memory";
  Traffic traffic;
  const auto comm = make_communicator(deck::CommunicatorKind::mpi, Overlap::yes, group, traffic);
  constexpr Index large = (Index{2362} << 20) / 4 + 3, small = 5;
  const Index sent = comm->rank() == 0 ? large : small,
              received = comm->rank() == 0 ? small : large;
  const Words out = words_in_order(sent),
              in("kzero::tests::received", static_cast<std::size_t>(received));
  const int other = 1 - comm->rank();
  std::vector<ConstSpan> send(2);
  std::vector<Span> receive(2);
  send[other] = {out.data(), sent, Dtype::fp32};
  receive[other] = {in.data(), received, Dtype::fp32};
  comm->all_to_all(Execution(), send, receive, Operation::all_gather, Purpose::parameters);
  EXPECT_EQ(wrong_in(in), 0);
  EXPECT_EQ(traffic.outside().begin()->second.bytes, sent * 4);
}

}  // namespace
}  // namespace kzero::comm
