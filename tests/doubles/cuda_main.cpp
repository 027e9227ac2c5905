// Runs tests with kokkos/Kokkos_Core.hpp on every rank: one that fails on any rank fails the
// program.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>

namespace {

class Kernels : public testing::Environment {
 public:
  void TearDown() override { Kokkos::finalize(); }
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(nullptr, nullptr);
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new Kernels);
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
