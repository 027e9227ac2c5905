#!/bin/bash
# Trains on hosts that share a file system, without a batch system. If a host dies, the training resumes on the others.
#
#   bash jobscripts/mpiexec.sh HOSTFILE input/DECK.toml [train.steps=1000 ...]
#
# HOSTFILE has one line per host: NAME or NAME:RANKS. mpiexec must reach the hosts without a password. OMP_NUM_THREADS is the
# number of threads per rank (1). The deck must name a checkpoint.folder that all hosts see. See docs/running.md.

batch=mpiexec
batch_command=bash
usage="jobscripts/mpiexec.sh HOSTFILE DECK.toml [key=value ...]"
host_file=${1-}
(($# >= 2)) && shift || set --
source "${KZERO_JOBSCRIPTS:-$(dirname "$0")}/job.sh" || exit
train "$@"
