#!/usr/bin/env bash
# Makes one archive with what a borrowed machine with an NVIDIA GPU needs to run first_hour.sh, where nothing can be installed:
# programs for any x86-64 processor, the libraries that a bare machine lacks, decks, a text, and results of a host to compare with
# (references.json). Needs no GPU. Installs what is missing here, as cmake/debian.sh does.
#
#   bash tests/device/bundle.sh                builds and writes build/device/kzero_device.tar.xz
#   bash tests/device/bundle.sh --small        the same with four of the ten test programs
#   bash tests/device/bundle.sh --from BUILD   packs what a build for CUDA has, quickly, into build/device/rehearsal.tar.xz: to
#                                                   rehearse the start of first_hour.sh on a machine without a GPU
#   bash tests/device/bundle.sh --host BUILD   packs a host's build into build/device/rehearsal_host.tar.xz: to rehearse all of
#                                                   first_hour.sh --rehearse
#
# An archive of more than 35 MiB is refused. Test programs are left out before that, the last of the list first. Programs that need a
# newer glibc or libstdc++ than that of Ubuntu 24.04 are refused, too (pack.py).
set -euo pipefail
cd "$(dirname "$0")/../.."

programs=(kzero kernel_benchmark test_kernels test_tensor test_comm test_zero test_model test_optim test_runtime test_parity
  test_reference test_engine)
launcher=(/usr/bin/mpiexec.hydra /usr/bin/hydra_pmi_proxy)
folder=build/device
build=build/device/cuda
archive=$folder/kzero_device.tar.xz
fast=(--fast --limit 1000000000)
case ${1:-}:$# in
  --from:2) build=$2 archive=$folder/rehearsal.tar.xz programs=(kzero test_runtime) ;;
  --host:2) build=$2 archive=$folder/rehearsal_host.tar.xz programs=(kzero test_runtime test_comm test_zero) ;;
  --small:1) programs=("${programs[@]:0:6}") fast=() ;;
  :0) fast=() ;;
  *) echo "usage: bash tests/device/bundle.sh [--small | --from BUILD | --host BUILD]" >&2; exit 2 ;;
esac

if ((!${#fast[@]})); then
  bash cmake/debian.sh tests cuda
  # Test programs find their data in the checkout on the other machine, in which first_hour.sh runs them.
  cmake --preset cuda -B "$build" -DKZERO_NATIVE=OFF -DKZERO_TESTS=ON -DKZERO_BENCHMARKS=ON -DKZERO_TEST_DATA=tests/data
  cmake --build "$build" --target "${programs[@]}"
fi

stage=$folder/stage
rm -rf "$stage"
mkdir -p "$stage/decks"
cp -r input/*.toml input/llama input/gpu "$stage/decks/"
python3 -B tests/device/training.py "$stage/text"
if [[ ${1:-} == --host ]]; then
  python3 -B tests/device/references.py "$build/kzero" "$stage/references.json" --rehearse
else
  cp tests/device/references.json "$stage/"
fi
echo "commit $(git rev-parse --short=12 HEAD)$(git diff --quiet HEAD || echo '+changes'), built in $(basename "$build") on $(date -u +%F)" >"$stage/bundle.txt"
python3 -B tests/device/pack.py "${fast[@]}" "$build" "$stage" "$archive" "${programs[@]}" "${launcher[@]}"
