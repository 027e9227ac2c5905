#!/usr/bin/env bash
# The main job and the tests of the stand-in device, from one build. .ci/run runs this on Debian 13, which has GCC 14, MPICH 4.2,
# HDF5 1.14 and oneDNN 3.7. It changes the deck, so it is for a clone that is thrown away: the stand-in device multiplies by slow
# loops, and ten steps are enough to train, stop, resume and plot.
set -euo pipefail
cd "$(dirname "$0")/.."

sed -i 's/^steps = .*/steps = 10/; s/^warmup = .*/warmup = 2/' input/quickstart.toml
bash input/quickstart.sh -DKZERO_WERROR=ON -DKZERO_STAND_IN_DEVICE=ON \
  '-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG -Wno-maybe-uninitialized'
bash .ci/stand_in.sh release
