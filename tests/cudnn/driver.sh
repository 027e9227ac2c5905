#!/usr/bin/env bash
# Makes a stand-in for the driver library from the header cuda.h. It accepts every kernel that is loaded, and fails every other call.
# With it, cuDNN makes complete plans without a driver or a device.
#
#   bash driver.sh CUDA_H COMPILER LIBRARY
set -euo pipefail

# Names as programs write them and, of functions with versions, as the library has them. Handles of code point anywhere.
{ cat "$1"; "$2" -E "$1"; } | grep -oE '\bcu[A-Z][A-Za-z0-9_]*\b' | sort -u |
  sed -E 's/.*/int &(void** handle) { return 34; }/; /cuLibrary(LoadData|GetKernel)\(/s/return 34/return *handle = handle, 0/' |
  "$2" -w -shared -fPIC -x c - -Wl,-soname,libcuda.so.1 -o "$3"
