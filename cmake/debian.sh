#!/usr/bin/env bash
# Installs what a bare Debian bookworm lacks to build and test kzero: packages as root, the rest into .deps/ of this
# checkout, where the CMake presets look first. Safe to run again: what is there is left alone.
#
#   bash cmake/debian.sh         for the presets release, debug, asan and stand-in
#   bash cmake/debian.sh cuda    also for the preset cuda: toolkit, NCCL, Kokkos for the device
#   bash cmake/debian.sh onednn  also oneDNN 3 in place of Debian's 2.6, for -DOneDNN_ROOT=.deps/onednn
set -euo pipefail

case ${1-} in
  "" | cuda | onednn) ;;
  *) echo "usage: bash cmake/debian.sh [cuda | onednn]" >&2; exit 2 ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
packages=(
  # build
  ccache cmake g++ git ninja-build pkg-config python3-venv
  # libraries; this OpenBLAS shares the threads of OpenMP programs instead of starting its own
  libcli11-dev libdnnl-dev libfmt-dev libhdf5-mpich-dev libicu-dev libmpich-dev libopenblas-openmp-dev
  libtomlplusplus-dev libxxhash-dev mpich nlohmann-json3-dev
  # tests, plots, style
  clang-14 clang-format-14 clang-tidy-14 fish groff-base hdf5-tools libclang-rt-14-dev libomp-14-dev libbenchmark-dev libgtest-dev llvm-14 munge
  python3-h5py python3-matplotlib python3-numpy shellcheck slurm-wlm zsh
  iproute2 nftables openssh-server  # tests over several nodes, each of which starts an sshd of its own
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "debian.sh: installing ${missing[*]}"
  if ((EUID != 0)); then
    echo "debian.sh: these packages are missing and installing them needs root" >&2
    exit 1
  fi
  # Tests start the services that they need. The packages' own are not started.
  if [[ ! -e /usr/sbin/policy-rc.d ]]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    install -m 755 /dev/stdin /usr/sbin/policy-rc.d <<<$'#!/bin/sh\nexit 101'
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# What input/prepare.py and the tests of the tokenizer use, in a virtual environment of the tree
venv=$here/../.deps/venv
if ! "$venv/bin/python3" -c 'import tokenizers, zstandard; assert tokenizers.__version__ == "0.23.3"' 2>/dev/null; then
  [[ -x $venv/bin/pip ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q --no-deps tokenizers==0.23.3 zstandard==0.25.0
fi

if [[ ${1-} == cuda ]]; then
  bash "$here/cuda_toolkit.sh"
  bash "$here/kokkos.sh" cuda
fi
bash "$here/kokkos.sh" host
if [[ ${1-} == onednn ]]; then
  bash "$here/onednn.sh"
fi

# What postprocess/report.py --tensorboard writes files with, without TensorBoard's server: 16 MB instead of 83
tensorboard=$here/../.deps/tensorboard
if ! PYTHONPATH=$tensorboard /usr/bin/python3 -c 'import tensorboard.summary.writer.event_file_writer' 2>/dev/null; then
  [[ -x $here/../.deps/venv/bin/pip ]] || python3 -m venv "$here/../.deps/venv"
  "$here/../.deps/venv/bin/pip" install -q --no-deps --target "$tensorboard" absl-py==2.5.1 packaging==26.3 protobuf==7.36.2 tensorboard==2.21.0
fi
