#!/usr/bin/env bash
# Installs what is missing, builds the release preset and runs every test but those over several nodes, which need root and
# have a part of their own in .ci/run. Arguments go to CMake's configuration.
#
#   bash tests/run.sh [-DKZERO_WERROR=ON ...]
set -euo pipefail
cd "$(dirname "$0")/.."
bash cmake/debian.sh tests
cmake --preset release -DKZERO_TESTS=ON "$@"
cmake --build --preset release
ctest --preset release -LE cluster
