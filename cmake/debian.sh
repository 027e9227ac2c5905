#!/usr/bin/env bash
# Installs what Debian 12, Debian 13 or Ubuntu 24.04 lacks to build kzero: packages as root, the rest into .deps/ of this
# checkout, where the CMake presets look first. Safe to run again: what is there is left alone. Without root it names the
# packages that an administrator has to install, and does the rest.
#
#   bash cmake/debian.sh           what the program needs: presets release and debug without tests
#   bash cmake/debian.sh tests     also what tests/run.sh needs
#   bash cmake/debian.sh ci        also what .ci/run needs: Clang, for the preset asan, tests/fuzz/run.sh and the style (Clang 14,
#                                  which is Debian 12's), HIP's headers, ruff and debootstrap
#   bash cmake/debian.sh cuda      also for the preset cuda: toolkit, NCCL, Kokkos for the device
#   bash cmake/debian.sh arm       also for the preset arm: cross compiler, libraries and Kokkos for AArch64, emulator
#   bash cmake/debian.sh onednn    also oneDNN 3 in place of Debian 12's 2.6, for -DOneDNN_ROOT=.deps/onednn
#
# Several of these words may be given.
set -euo pipefail

for word in "$@"; do
  case $word in
    tests | ci | cuda | arm | onednn) ;;
    *) echo "usage: bash cmake/debian.sh [tests] [ci] [cuda] [arm] [onednn]" >&2; exit 2 ;;
  esac
done
words=" $* "
wanted() { [[ $words == *" $1 "* ]]; }

here=$(cd "$(dirname "$0")" && pwd)
deps=$(dirname "$here")/.deps
packages=(
  # build
  ccache cmake g++ git ninja-build pkgconf python3-venv
  # libraries; this OpenBLAS shares the threads of OpenMP programs instead of starting its own
  libcli11-dev libdnnl-dev libfmt-dev libhdf5-mpich-dev libicu-dev libmpich-dev libopenblas-openmp-dev
  libtomlplusplus-dev libxxhash-dev mpich nlohmann-json3-dev
  # plots
  python3-matplotlib
)
if wanted tests; then
  packages+=(fish groff-base hdf5-tools libbenchmark-dev libgtest-dev make munge patchelf python3-h5py python3-numpy shellcheck
    slurm-wlm xz-utils zsh
    iproute2 nftables openssh-server)  # tests over several nodes, each of which starts an sshd of its own
fi
if wanted ci; then
  packages+=(clang clang-19 clang-format clang-tidy debootstrap libamdhip64-dev libclang-rt-dev libomp-dev llvm)
fi
if wanted arm; then
  packages+=(g++-aarch64-linux-gnu qemu-user)
fi

# The packages that are not installed, one a line.
missing_packages() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

if ! command -v dpkg-query >/dev/null; then
  echo "debian.sh: this system has no dpkg; the compiler and the libraries have to be there (docs/installing.md, Without root):" >&2
  echo "  ${packages[*]}" >&2
elif mapfile -t missing < <(missing_packages) && ((${#missing[@]})); then
  if ((EUID == 0)); then
    echo "debian.sh: installing ${missing[*]}"
    # Tests start the services that they need. The packages' own are not started.
    if [[ ! -e /usr/sbin/policy-rc.d ]]; then
      trap 'rm -f /usr/sbin/policy-rc.d' EXIT
      install -m 755 /dev/stdin /usr/sbin/policy-rc.d <<<$'#!/bin/sh\nexit 101'
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  else
    echo "debian.sh: ${#missing[@]} packages are missing, and installing them needs root. The command for an administrator:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    echo "debian.sh: continuing with what needs no root" >&2
  fi
fi

failed=()
attempt() { "$@" || failed+=("$*"); }

# Installs with the pip of .deps/venv unless the Python there passes a check.
pip_install() {  # CHECK ARGUMENTS...
  "$deps/venv/bin/python3" -c "$1" 2>/dev/null && return
  [[ -x $deps/venv/bin/pip ]] || python3 -m venv "$deps/venv" || return
  # The script pip names the folder that it was made in: in a copied .deps it would install there.
  "$deps/venv/bin/python3" -m pip install -q --no-deps "${@:2}"
}

# Modules that input/prepare.py and the tests of the tokenizer use
attempt pip_install 'import jinja2, tokenizers, zstandard
assert jinja2.__version__ == "3.1.6" and tokenizers.__version__ == "0.23.3"' \
  jinja2==3.1.6 markupsafe==3.0.3 tokenizers==0.23.3 zstandard==0.25.0

# Format and lint of the Python files: ruff.toml
if wanted ci; then
  attempt pip_install 'import importlib.metadata; assert importlib.metadata.version("ruff") == "0.17.6"' ruff==0.17.6
fi

if wanted cuda; then
  attempt bash "$here/cuda_toolkit.sh"
  attempt bash "$here/kokkos.sh" cuda
fi
attempt bash "$here/kokkos.sh" host
if wanted arm; then
  attempt bash "$here/arm64_sysroot.sh"
  attempt bash "$here/kokkos.sh" arm64
fi
if wanted onednn; then
  attempt bash "$here/onednn.sh"
fi

# Modules with which postprocess/report.py --tensorboard writes files, without TensorBoard's server: 16 MB instead of 83
if wanted tests; then
  attempt pip_install "import os; assert os.path.isdir('$deps/tensorboard/tensorboard-2.21.0.dist-info')" \
    --target "$deps/tensorboard" absl-py==2.5.1 packaging==26.3 protobuf==7.36.2 tensorboard==2.21.0
fi

if ((${#failed[@]})); then
  printf 'debian.sh: failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
