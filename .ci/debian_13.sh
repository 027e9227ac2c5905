#!/usr/bin/env bash
# Runs the main job and the stand-in device's tests from one build. .ci/run calls this script on Debian 13, which has GCC 14,
# MPICH 4.2, HDF5 1.14 and oneDNN 3.7. The stand-in device multiplies with slow loops, so the script shortens the deck to ten steps.
# They are enough to train, stop, resume and plot. Run it only in a clone that can be deleted, because it edits the deck there.
set -euo pipefail
cd "$(dirname "$0")/.."

sed -i 's/^steps = .*/steps = 10/; s/^warmup = .*/warmup = 2/' input/quickstart.toml
bash input/quickstart.sh -DKZERO_WERROR=ON -DKZERO_STAND_IN_DEVICE=ON \
  '-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG -Wno-maybe-uninitialized'
bash .ci/stand_in.sh release
