#!/usr/bin/env bash
# What .ci/run lets .ci/in_root.sh do on Debian 13, with GCC 14, MPICH 4.2, HDF5 1.14 and oneDNN 3.7: the main job, and tests of
# what these libraries do, all under the address sanitizer. Sixteen times fewer steps train, stop, resume and plot as well.
set -euo pipefail
cd "$(dirname "$0")/.."

export ASAN_OPTIONS=allocator_may_return_null=1
export LSAN_OPTIONS=suppressions=$PWD/tests/support/leaks.txt:print_suppressions=0
sed -i 's/^steps = .*/steps = 60/' input/quickstart.toml
bash input/quickstart.sh -DKZERO_WERROR=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-fsanitize=address \
  '-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1 -Wno-maybe-uninitialized' -DKZERO_DEVICE_OPTIONS=-O1

bash cmake/debian.sh tests
cmake --preset release -DCMAKE_BUILD_TYPE=Debug -DKZERO_TESTS=ON
cmake --build --preset release --target test_reference test_tensor
ctest --preset release -R '^(tensor_np1|reference_np2)$'
