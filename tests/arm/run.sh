#!/usr/bin/env bash
# Builds kzero for AArch64 on a bare Debian 12 (x86-64, root), runs its tests in an emulator, and compares its bits with those of
# x86-64. Installs everything it needs.
#
#   bash tests/arm/run.sh            tests of four folders, products, trainings, restarts and texts: an hour on two quiet cores
#   bash tests/arm/run.sh cuda       the code for devices with a host compiler for AArch64, without running it
#   bash tests/arm/run.sh short      products alone, as .ci/run does
set -euo pipefail
cd "$(dirname "$0")/../.."
found=build/arm/product_bits
export OMP_NUM_THREADS=1

build() {  # TARGET...
  local preset
  for preset in release arm; do
    cmake --preset "$preset" -DKZERO_WERROR=ON -DKZERO_TESTS=ON
    cmake --build --preset "$preset" --target "$@"
  done
}

# The products of kzero's own loops have the same bits on both. The lines about oneDNN name instructions of their processor.
same_products() {
  mkdir -p "$found"
  build/release/arm_products >"$found/x86-64"
  qemu-aarch64 -L .deps/arm64 build/arm/arm_products >"$found/aarch64"
  grep '^#' "$found/x86-64" "$found/aarch64"
  grep -qE '^# oneDNN .* for (SVE|NEON)' "$found/aarch64"
  diff <(grep '^reference' "$found/x86-64") <(grep '^reference' "$found/aarch64")
  echo "products of run.gemm = \"reference\": the same bits on x86-64 and AArch64"
}

# OpenBLAS has code for kinds of processors, which can be chosen. Shows how many products differ.
products_of_libraries() {
  local arm x86
  for x86 in Prescott Sandybridge Haswell SkylakeX Cooperlake; do
    OPENBLAS_CORETYPE=$x86 build/release/arm_products >"$found/x86-64-$x86"
  done
  for arm in ARMV8 NEOVERSEN1; do
    OPENBLAS_CORETYPE=$arm qemu-aarch64 -L .deps/arm64 build/arm/arm_products >"$found/aarch64-$arm"
    for x86 in Prescott Sandybridge Haswell SkylakeX Cooperlake; do
      paste -d' ' <(grep -v '^#' "$found/x86-64-$x86") <(grep -v '^#' "$found/aarch64-$arm") |
        awk -v names="$x86 and $arm" '{ n[$1 " " $2] += 3; for (i = 8; i <= 10; i++) same[$1 " " $2] += $i == $(i + 10) }
          END { for (k in n) print names ": " k ": " same[k] " of " n[k] " products have the same bits" }' | sort
    done
  done
}

case ${1:-} in
  '')
    bash cmake/debian.sh tests arm
    build kzero arm_products
    same_products
    products_of_libraries
    python3 tests/arm/compare.py build/release build/arm
    cmake --build --preset arm --target test_kernels test_model test_optim test_tensor
    ctest --preset arm -R '^(kernels|model|optim|tensor)_np1$' ;;
  short)
    bash cmake/debian.sh arm
    build arm_products
    same_products ;;
  cuda)
    bash cmake/debian.sh cuda arm
    cmake --preset cuda -DKZERO_TESTS=OFF
    python3 tests/arm/device_code.py build/cuda ;;
  *)
    echo "usage: bash tests/arm/run.sh [cuda|short]" >&2
    exit 2 ;;
esac
