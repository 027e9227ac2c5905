#include "grid/clocks.hpp"

#include <mpi.h>

#include <algorithm>
#include <limits>

#include "base/wait.hpp"

namespace kzero::grid {

namespace {

constexpr int clock_tag = 2, block_tag = 3;
constexpr int round_trips = 32;
constexpr std::size_t block_bytes = std::size_t{1} << 20;

/// The root's side of the exchange with one rank: answers each question with the root's time.
void answer(const Group& group, int rank, std::int64_t (*clock)()) {
  for (int i = 0; i < round_trips; ++i) {
    MPI_Recv(nullptr, 0, MPI_BYTE, rank, clock_tag, group.handle(), MPI_STATUS_IGNORE);
    const std::int64_t now = clock();
    MPI_Send(&now, 1, MPI_INT64_T, rank, clock_tag, group.handle());
  }
}

ClockOffset ask_root(const Group& group, std::int64_t (*clock)()) {
  ClockOffset best{0, std::numeric_limits<std::int64_t>::max()};
  for (int i = 0; i < round_trips; ++i) {
    const std::int64_t asked = clock();
    std::int64_t root = 0;
    MPI_Send(nullptr, 0, MPI_BYTE, 0, clock_tag, group.handle());
    MPI_Recv(&root, 1, MPI_INT64_T, 0, clock_tag, group.handle(), MPI_STATUS_IGNORE);
    const std::int64_t half = (clock() - asked) / 2;
    if (half < best.accuracy) best = {asked + half - root, half};
  }
  return best;
}

}  // namespace

bool is_on_root_node(const Group& group) {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(group.handle(), MPI_COMM_TYPE_SHARED, group.rank(), MPI_INFO_NULL, &node);
  int has_root = group.is_root() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &has_root, 1, MPI_INT, MPI_MAX, node);
  MPI_Comm_free(&node);
  return has_root != 0;
}

ClockOffset measure_offset(const Group& group, std::int64_t (*clock)(), bool shares_clock) {
  const std::vector<double> sharing = group.all_gather(shares_clock ? 1 : 0);
  const Waiting waiting({"measurement of clocks", group.name()});
  if (!group.is_root()) return shares_clock ? ClockOffset{} : ask_root(group, clock);
  for (int rank = 1; rank < group.size(); ++rank) {
    if (sharing[rank] == 0) answer(group, rank, clock);
  }
  return {};
}

void hand_to_root(const Group& group, std::span<const std::byte> mine,
                  const std::function<void(int rank, std::span<const std::byte>)>& take) {
  const Waiting waiting({"time lines", group.name()});
  if (!group.is_root()) {
    for (bool more = true; more;) {  // a block that is not full is the last one
      const auto block = mine.first(std::min(mine.size(), block_bytes));
      MPI_Send(block.data(), static_cast<int>(block.size()), MPI_BYTE, 0, block_tag,
               group.handle());
      mine = mine.subspan(block.size());
      more = block.size() == block_bytes;
    }
    return;
  }
  take(0, mine);
  std::vector<std::byte> block(group.size() > 1 ? block_bytes : 0);
  for (int rank = 1; rank < group.size(); ++rank) {
    for (bool more = true; more;) {
      MPI_Status status;
      MPI_Recv(block.data(), static_cast<int>(block_bytes), MPI_BYTE, rank, block_tag,
               group.handle(), &status);
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      take(rank, std::span(block).first(static_cast<std::size_t>(count)));
      more = static_cast<std::size_t>(count) == block_bytes;
    }
  }
}

}  // namespace kzero::grid
