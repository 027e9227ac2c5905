#!/usr/bin/env bash
# Builds and runs the tests for a device whose memory the host cannot access. .ci/run calls this script on Debian 13, so the same
# build also tests a newer compiler and newer libraries.
#
#   bash .ci/stand_in.sh stand-in     builds in build/stand-in
#   bash .ci/stand_in.sh release      builds in build/release, after .ci/debian_13.sh has configured it for the stand-in device
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1

bash cmake/debian.sh tests
cmake --preset "$preset" -DKZERO_TESTS=ON -DKZERO_WERROR=ON
# Trainings and commands of kzero launch the kernels. Tests of the folders below the engine are left to the release build.
cmake --build --preset "$preset" --target kzero test_engine test_parity test_probe test_reference test_run test_tensor

# fp16 differs from bf16 by the type and by skipped steps, which tests without its suffix cover. It is the third of a test's types,
# or the one that the test is named after. The release build runs all.
without='-Precisions/*/fp16:Types/*/fp16:Cases/*.Fp16*:*/2.*'
# Of the tests of the program those whose results come out of device memory.
programs='Runs|Convert|HuggingFace|data_Blends|evaluate_(Texts|Choices)|restart_Divergence|trust_.*|profile|generate_Texts'
tests="(engine|probe|reference|run)_np2|tensor_stand_in|app_($programs)" code=0
GTEST_FILTER=$without ctest --preset "$preset" -R "^($tests)\$" || code=$?

# Which memory the host touches is the same in any type, grid and stage. In fp32 reference_np2 trains, in stages 0 and 3.
alike='Precisions/*/fp32:Types/*/fp32:*Sequence.*ShowIn*:*LoraBits.*Ranks*:*Tiles.*InAdapters*:*Tiles.*InTensorGroups*'
alike+=':*Documents.*InATensorGroup*:*VerificationIn.*WithTensor*:Muon.DoesNotShowOverlap:*OptimizerKinds.RestartIn*'
GTEST_FILTER=$without:$alike ctest --preset "$preset" -R '^parity_np2$' || code=$?
exit "$code"
