#!/usr/bin/env bash
# Installs what is missing, builds the release preset and runs every test. Arguments go to CMake's configuration.
#
#   bash tests/run.sh [-DKZERO_WERROR=ON ...]
set -euo pipefail
cd "$(dirname "$0")/.."
bash cmake/debian.sh
cmake --preset release "$@"
cmake --build --preset release
ctest --preset release
