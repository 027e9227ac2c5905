#!/usr/bin/env bash
# Builds kzero with Debian's Open MPI, which is unpacked next to MPICH (cmake/openmpi.sh), after the preset release: most objects come
# from the compiler cache, as few sources see mpi.h. Trains with both on two ranks: the parameters have to agree bit for bit.
# Then tests stop, resume and kill runs.
set -euo pipefail
cd "$(dirname "$0")/.."

bash cmake/openmpi.sh
mpich=$(sed -n 's/^MPIEXEC_EXECUTABLE:FILEPATH=//p' build/release/CMakeCache.txt)
export OMP_NUM_THREADS=1
train() {  # FOLDER MPIEXEC KZERO [OPTION...]
  "$2" "${@:4}" -n 2 "$3" train input/quickstart.toml train.steps=20 optimizer.warmup=5 checkpoint.folder="build/mpi/$1" run.metrics=
}
parameters() {  # FOLDER KZERO
  "$2" inspect --verify "build/mpi/$1" | grep '^parameters .*hash '
}

rm -rf build/mpi
train mpich "$mpich" build/release/kzero
expected=$(parameters mpich build/release/kzero)

# shellcheck disable=SC1091  # the script above wrote it
. .deps/openmpi/environment
# Root may launch, more ranks than cores too, and ranks that wait let other processes run.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_orte_execute_quiet=1
cmake --preset release -B build/openmpi -DKZERO_WERROR=ON -DKZERO_TESTS=ON -DMPI_CXX_COMPILER="$OPAL_PREFIX/bin/mpicxx.openmpi"
cmake --build build/openmpi --target kzero ucx_sleep
ldd build/openmpi/kzero | grep 'libmpi\.so\.40'
train openmpi mpiexec.openmpi build/openmpi/kzero
found=$(parameters openmpi build/openmpi/kzero)
printf 'MPICH:    %s\nOpen MPI: %s\n' "$expected" "$found"
[[ $found == "$expected" ]]
ctest --test-dir build/openmpi --output-on-failure -R '^(app_Stops|faults_(Kills|LoneFailures))$'
