#!/usr/bin/env bash
# What .ci/run lets .ci/in_root.sh do on Debian 13, with GCC 14, MPICH 4.2, HDF5 1.14 and oneDNN 3.7: the main job and the tests of
# the stand-in device, by one build. That device multiplies by plain loops; a hundredth of the steps trains, stops, resumes and
# plots as well.
set -euo pipefail
cd "$(dirname "$0")/.."

sed -i 's/^steps = .*/steps = 10/; s/^warmup = .*/warmup = 2/' input/quickstart.toml
bash input/quickstart.sh -DKZERO_WERROR=ON -DKZERO_STAND_IN_DEVICE=ON \
  '-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG -Wno-maybe-uninitialized'
bash .ci/stand_in.sh release
