#!/usr/bin/env bash
# Makes one archive with what a borrowed machine with an NVIDIA GPU needs to run first_hour.sh, where nothing can be installed:
# programs for any x86-64 processor, the libraries that a bare machine lacks, decks, a text, and results of a host to compare with.
# Needs no GPU. Installs what is missing here, as cmake/debian.sh does.
#
#   bash jobscripts/device/bundle.sh                builds, runs the host's trainings and writes build/device/kzero_device.tar.xz
#   bash jobscripts/device/bundle.sh --from BUILD   packs what a build for CUDA has, quickly and without the host's results, into
#                                                   build/device/rehearsal.tar.xz: for a rehearsal of first_hour.sh
#
# An archive of more than 36 MiB is refused. Test programs are left out before that, the last of the list first.
set -euo pipefail
cd "$(dirname "$0")/../.."

programs=(kzero kernel_benchmark test_kernels test_tensor test_model test_optim test_runtime test_comm test_zero test_parity
  test_reference test_engine)
launcher=(/usr/bin/mpiexec.hydra /usr/bin/hydra_pmi_proxy)
folder=build/device
build=build/device/cuda
archive=$folder/kzero_device.tar.xz
fast=()
if [[ ${1:-} == --from && $# == 2 ]]; then
  build=$2 archive=$folder/rehearsal.tar.xz fast=(--fast --limit 1000000000)
  programs=(kzero test_runtime)
elif (($#)); then
  echo "usage: bash jobscripts/device/bundle.sh [--from BUILD]" >&2
  exit 2
else
  bash cmake/debian.sh tests cuda
  # Test programs find their data in the checkout on the other machine, in which first_hour.sh runs them.
  cmake --preset cuda -B "$build" -DKZERO_NATIVE=OFF -DKZERO_TESTS=ON -DKZERO_BENCHMARKS=ON -DKZERO_TEST_DATA=tests/data
  cmake --build "$build" --target "${programs[@]}"
  cmake --preset release
  cmake --build --preset release --target kzero
fi

stage=$folder/stage
rm -rf "$stage"
mkdir -p "$stage/decks"
cp -r input/*.toml input/llama input/gpu "$stage/decks/"
# A megabyte of sources, in a fixed order: as bytes, they are tokens of every vocabulary.
git ls-files -z src | LC_ALL=C sort -z | xargs -0 cat >"$folder/sources"
head -c 1048576 "$folder/sources" >"$stage/text"
echo "commit $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD || echo '+changes'), built in $(basename "$build") on $(date -u +%F)" >"$stage/bundle.txt"
if ((!${#fast[@]})); then
  python3 -B jobscripts/device/references.py build/release/kzero "$stage"
fi
python3 -B jobscripts/device/pack.py "${fast[@]}" "$build" "$stage" "$archive" "${programs[@]}" "${launcher[@]}"
