#!/usr/bin/env bash
# Finds out what kzero does on a device that nobody has run it on: unpacks a bundle of bundle.sh and runs tests, comparisons and
# measurements, the most informative first. Run it from a checkout of the bundle's commit, whose tests/data the test programs read.
#
#   bash tests/device/first_hour.sh BUNDLE OUTPUT [--seconds N] [--rehearse] [PART...]
#
# PART       packaging units offload features losses attention bits nccl speed sanitizer counters ranks pytorch; default: all, in stages
#            whose parts run side by side unless they measure time. Named parts run one after the other, in the order of their names
# N          limit of the call in seconds (540); every stage and every program has a limit of its own as well
# --rehearse for a bundle of a host's programs (bundle.sh --host): small models, and MPI in NCCL's place
# OUTPUT     gets summary.txt (sixty lines, printed last), results.json and logs.tar.gz, complete after every stage
#
# NCCL_* variables of the caller replace the settings of the part nccl; an empty one leaves NCCL its default.
#
# Needs python3 (3.11 or newer), CUDA's libraries (NVIDIA's wheels for that Python, or /usr/local/cuda) and 4 GB in TMPDIR. It
# changes no setting of the device. Exit code 0: it ran to its end, whatever the tests found.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
if (($# < 2)); then
  echo "usage: bash tests/device/first_hour.sh BUNDLE OUTPUT [--seconds N] [--rehearse] [PART...]" >&2
  exit 2
fi
folder=$(mktemp -d "${TMPDIR:-/tmp}/kzero_first_hour.XXXXXX")
trap 'rm -rf "$folder"' EXIT
python3 -W ignore -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$1" "$folder"
shift
python3 -B "$here/first_hour.py" "$folder" "$@"
