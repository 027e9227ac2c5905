// One message of more than 2^31 bytes. It takes 4.4 GiB on the node, so a CTest entry of its own
// runs it, alone.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

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

std::uint32_t value_of(Index i) { return static_cast<std::uint32_t>(i) * 2654435761U; }

TEST(LargeMessage, DISABLED_OfMoreThan2GiBArrivesWhole) {
  const grid::Group group = grid::world_group();
  ASSERT_EQ(group.size(), 2);
  if (group.min(available_bytes()) < Index{10} << 30) GTEST_SKIP() << "needs 10 GiB of free memory";
  Traffic traffic;
  const auto comm = make_communicator("mpi", Overlap::yes, group, traffic);
  constexpr Index large = (Index{2362} << 20) / 4 + 3, small = 5;
  const Index sent = comm->rank() == 0 ? large : small,
              received = comm->rank() == 0 ? small : large;
  // 32-bit words, sent as fp32: nothing but a copy happens to them.
  const auto out = std::make_unique_for_overwrite<std::uint32_t[]>(sent);
  const auto in = std::make_unique_for_overwrite<std::uint32_t[]>(received);
  for (Index i = 0; i < sent; ++i) out[i] = value_of(i);
  const int other = 1 - comm->rank();
  std::vector<ConstSpan> send(2);
  std::vector<Span> receive(2);
  send[other] = {out.get(), sent, Dtype::fp32};
  receive[other] = {in.get(), received, Dtype::fp32};
  comm->all_to_all(Execution(), send, receive, Operation::all_gather, Purpose::parameters);
  Index wrong = 0;
  for (Index i = 0; i < received; ++i) wrong += in[i] != value_of(i);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(traffic.outside().begin()->second.bytes, sent * 4);
}

}  // namespace
}  // namespace kzero::comm
