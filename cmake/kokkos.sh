#!/usr/bin/env bash
# Builds Kokkos 4.7.0 into .deps/kokkos-host (OpenMP and Serial), .deps/kokkos-static (the same as a static library, for package.sh),
# .deps/kokkos-arm64 (as host, for AArch64 by a cross compiler) or .deps/kokkos-cuda (CUDA for Hopper as well).
# Distributions have Kokkos 3 or none, so the source is the copy that the PyPI package pygenten carries. Called by debian.sh.
# Needs no root: CMake, a C++20 compiler (CXX, or c++), Python with venv and a network.
#
#   bash cmake/kokkos.sh host|static|arm64|cuda
set -euo pipefail

variant=${1:?host, static, arm64 or cuda}
here=$(cd "$(dirname "$0")" && pwd)
deps=$(dirname "$here")/.deps
prefix=$deps/kokkos-$variant
source=$deps/source/pygenten-0.1.5
options=(
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix"
  -DCMAKE_CXX_STANDARD=20 -DCMAKE_CXX_EXTENSIONS=OFF -DBUILD_SHARED_LIBS=ON
  -DKokkos_ENABLE_OPENMP=ON -DKokkos_ENABLE_SERIAL=ON
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=100  # a third of the time
)
cmake=cmake compiler=${CXX:-c++}
case $variant in
  host) ;;
  static) options+=(-DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON) ;;
  cuda)
    cmake=$deps/venv/bin/cmake  # 3.31, the first that compiles several sources of CUDA as one
    header=$here/kokkos47_cuda13.hpp
    options+=(
      -DKokkos_ENABLE_CUDA=ON -DKokkos_ARCH_HOPPER90=ON -DKokkos_ENABLE_COMPILE_AS_CMAKE_LANGUAGE=ON
      -DCMAKE_CUDA_COMPILER="$deps/cuda/bin/nvcc" -DCUDAToolkit_ROOT="$deps/cuda"
      "-DCMAKE_CUDA_FLAGS=-std=c++20 -include $header"
      # The CUDA runtime that kzero uses, instead of one of its own
      -DCMAKE_CUDA_RUNTIME_LIBRARY=Shared '-DCMAKE_INSTALL_RPATH=$ORIGIN/../../cuda/lib64'
    ) ;;
  arm64)
    compiler=aarch64-linux-gnu-g++
    options+=("-DCMAKE_TOOLCHAIN_FILE=$here/arm64.cmake") ;;
  *) echo "kokkos.sh: '$variant' is none of host, static, arm64, cuda" >&2; exit 2 ;;
esac

for tool in cmake "$compiler" python3; do
  command -v "$tool" >/dev/null || { echo "kokkos.sh: $tool is missing" >&2; exit 1; }
done
if command -v ccache >/dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
if command -v ninja >/dev/null; then
  options+=(-G Ninja)
fi

# Built once for a recipe: the stamp is this script, the compiler, and the header that is compiled in.
recipe=$({ cat "$0" "${header:-/dev/null}"; "$compiler" --version; } | sha256sum)
if [[ -f $prefix/recipe && $(<"$prefix/recipe") == "$recipe" ]]; then
  exit 0
fi
echo "kokkos.sh: building Kokkos 4.7.0 ($variant) into $prefix"

[[ -x $deps/venv/bin/pip ]] || python3 -m venv "$deps/venv"
if [[ $variant == cuda ]]; then
  "$deps/venv/bin/python3" -m pip install -q --no-deps cmake==3.31.10
fi
if [[ ! -f $source/tpls/kokkos/CMakeLists.txt ]]; then
  mkdir -p "$deps/source"
  # pip checks the digest, and asks the package for its metadata with the three tools that do so.
  "$deps/venv/bin/pip" install -q scikit-build-core pybind11 setuptools_scm
  "$deps/venv/bin/pip" download -q --no-deps --no-build-isolation --no-binary pygenten -d "$deps/source" -r /dev/stdin \
    <<<"pygenten==0.1.5 --hash=sha256:e620f05c742905e2db705d875f1cac92ef0ed453f9e6734e9beda26cc0f9cce7"
  tar -xzf "$source.tar.gz" -C "$deps/source" pygenten-0.1.5/tpls/kokkos
fi

build=$deps/build-kokkos-$variant
log=$build.log
rm -rf "$build" "$prefix"
{
  "$cmake" -S "$source/tpls/kokkos" -B "$build" "${options[@]}"
  "$cmake" --build "$build" --parallel "$(nproc)"
  "$cmake" --install "$build"
} >"$log" 2>&1 || { tail -n 40 "$log" >&2; echo "kokkos.sh: failed; the whole log is $log" >&2; exit 1; }
rm -rf "$build"
echo "$recipe" >"$prefix/recipe"
