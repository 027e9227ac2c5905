// Preloaded: rank 1 never returns from its first MPI_Comm_split. The others then wait for it, after
// MPI_Init and before the heartbeat.
#include <mpi.h>
#include <unistd.h>

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* result) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  while (rank == 1) pause();
  return PMPI_Comm_split(comm, color, key, result);
}
