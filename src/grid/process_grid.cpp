#include "grid/process_grid.hpp"

#include <utility>

#include "base/error.hpp"

namespace kzero::grid {

namespace {

MPI_Comm split(const Group& world, Index color) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(world.handle(), static_cast<int>(color), world.rank(), &part);
  return part;
}

Index checked_tensor(const Group& world, Index data, Index tensor) {
  const Index ranks = world.size();
  KZERO_REQUIRE(ranks % tensor == 0 && (data == 0 || data * tensor == ranks), ExitCode::usage,
                "grid.data = {} times grid.tensor = {} is not the {} ranks of this launch", data,
                tensor, ranks);
  return tensor;
}

}  // namespace

Group world_group() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  return {copy, "world"};
}

bool is_launched() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

void abort_launch(int exit_code) {
  if (is_launched()) MPI_Abort(MPI_COMM_WORLD, exit_code);
}

ProcessGrid::ProcessGrid(Group world, Index data, Index tensor)
    : world_(std::move(world)),
      tensor_(split(world_, world_.rank() / checked_tensor(world_, data, tensor)), "tensor"),
      data_(split(world_, world_.rank() % tensor), "data") {}

}  // namespace kzero::grid
