#!/usr/bin/env bash
# From a bare Debian 12 or Debian 13 (as root) to a trained model: installs what is missing, builds, trains
# input/quickstart.toml on two ranks, stops half-way, resumes from the checkpoint and draws the loss to runs/quickstart/loss.png.
#
#   bash input/quickstart.sh [-DKZERO_WERROR=ON ...]
#
# Arguments go to CMake's configuration. Safe to run again: it starts afresh, and removes nothing but runs/quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."

deck=input/quickstart.toml
folder=runs/quickstart
stopped=75  # the exit code of a run that stopped in time with a checkpoint
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}  # a rank
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1  # Open MPI asks twice

section() { printf '\n=== %s\n' "$*"; }

section "Install what is missing"
bash cmake/debian.sh

section "Build into build/release"
options=()
[[ -f build/release/CMakeCache.txt ]] || options=(-DKZERO_TESTS=OFF)  # they need more packages: bash tests/run.sh
cmake --preset release "${options[@]}" "$@"
cmake --build --preset release --target kzero
kzero=build/release/kzero
# Of the MPI library that it was built with. Debian's default is Open MPI's where several are installed.
mpiexec=$(sed -n 's/^MPIEXEC_EXECUTABLE:FILEPATH=//p' build/release/CMakeCache.txt)

steps=$(sed -n 's/^steps *= *\([0-9]*\).*/\1/p' "$deck")
half=$((steps / 2))
rm -rf "$folder"

section "Train on two ranks; stop after $half of $steps steps"
code=0
"$mpiexec" -n 2 "$kzero" train "$deck" run.max_steps=$half || code=$?
if ((code != stopped)); then
  echo "quickstart.sh: the run ended with exit code $code, not with $stopped (stopped with a checkpoint)" >&2
  exit 1
fi
echo "exit code $code: stopped with a checkpoint, to be run again"

section "The same command without the limit resumes from the checkpoint"
"$mpiexec" -n 2 "$kzero" train "$deck"

section "The newest checkpoint, every checksum compared"
"$kzero" inspect --verify "$folder/checkpoints"

section "Draw the loss"
/usr/bin/python3 postprocess/plot_loss.py "$folder/metrics.jsonl" -o "$folder/loss.png"

printf '\ndone in %d min %02d s. Look at %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$folder/loss.png"
