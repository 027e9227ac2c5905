#!/usr/bin/env bash
# Submits a chain of jobs that run one after another, for sites where a job may not submit itself again. Each job resumes
# from the checkpoint of the previous one. When the training is done, or fails, the rest of the chain is cancelled.
#
#   bash jobscripts/chain.sh 5 jobscripts/slurm_cpu.sh input/DECK.toml [key=value ...]
#
# Use SBATCH_... variables instead of options: SBATCH_TIMELIMIT=60 bash jobscripts/chain.sh ...
set -euo pipefail

if (($# < 3)) || [[ ! $1 =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: bash chain.sh JOBS SCRIPT DECK.toml [key=value ...]" >&2
  exit 2
fi
jobs=$1
shift

# Slurm can run jobs with the same name and owner one at a time, so the name must be unique to the chain.
KZERO_CHAIN=kzero-$(date +%Y%m%d-%H%M%S)-$$
export KZERO_CHAIN
for ((i = 0; i < jobs; ++i)); do
  sbatch --job-name="$KZERO_CHAIN" --dependency=singleton --no-requeue "$@"
done
