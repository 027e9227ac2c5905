#!/usr/bin/env bash
# Builds kzero with a machine's modules into build/PRESET, where the job scripts look for it. Run it from the root of a clone:
#
#   KZERO_LIBRARIES=PREFIX bash jobscripts/machines/build.sh jobscripts/machines/cluster.env [CMAKE OPTION ...]
#
# KZERO_LIBRARIES   folders with toml++, CLI11, fmt, nlohmann-json, xxHash, oneDNN and BLAS, separated by semicolons; for
#                   instance a Spack view: after spack -e . install, the view is .spack-env/view
# KOKKOS_ROOT       an installed Kokkos 4.7 or newer; without it KOKKOS_SOURCE, a folder with its source, is built into
#                   build/kokkos-PRESET
# KZERO_JOBS        number of compilers at once (8, because login nodes are shared)
#
# Not tested at a centre. The environment file names modules and options, and sets whether this build is for NVIDIA GPUs.
set -eo pipefail  # no -u: module scripts use variables that are not set

if [[ $# == 0 || ! -f $1 ]]; then
  echo "usage: bash build.sh cluster.env [CMAKE OPTION ...]" >&2
  exit 2
fi
preset=release
kokkos_options=() cmake_options=()
source "$1"
shift

if [[ -z ${KOKKOS_ROOT-} ]]; then
  if [[ ! -f ${KOKKOS_SOURCE-}/CMakeLists.txt ]]; then
    echo "build.sh: KOKKOS_ROOT names an installed Kokkos, or KOKKOS_SOURCE the folder with its source" >&2
    exit 2
  fi
  KOKKOS_ROOT=$PWD/build/kokkos-$preset
  cmake -S "$KOKKOS_SOURCE" -B "$KOKKOS_ROOT-build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$KOKKOS_ROOT" -DCMAKE_CXX_STANDARD=20 \
    -DCMAKE_CXX_EXTENSIONS=OFF -DBUILD_SHARED_LIBS=ON -DKokkos_ENABLE_OPENMP=ON -DKokkos_ENABLE_SERIAL=ON "${cmake_options[@]}" "${kokkos_options[@]}"
  cmake --build "$KOKKOS_ROOT-build" --parallel "${KZERO_JOBS:-8}"
  cmake --install "$KOKKOS_ROOT-build"
fi

cmake -S . -B "build/$preset" -DCMAKE_BUILD_TYPE=Release -DKokkos_ROOT="$KOKKOS_ROOT" -DCMAKE_PREFIX_PATH="${KZERO_LIBRARIES-}" \
  -DKZERO_TESTS=OFF "${cmake_options[@]}" "$@"
cmake --build "build/$preset" --parallel "${KZERO_JOBS:-8}"
"build/$preset/kzero" --version
