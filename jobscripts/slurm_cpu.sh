#!/bin/bash
# Trains on CPU nodes under Slurm for as long as it takes: a job that runs out of time stops with a
# checkpoint and submits itself again, under the same job id.
#
# From the repository's root:
#   sbatch jobscripts/slurm_cpu.sh input/DECK.toml [train.steps=1000 ...]
#
# The deck must name a checkpoint.folder on a file system that all nodes share. What a site changes:
# the lines marked SITE. Options given to sbatch itself win over the lines here.

#SBATCH --job-name=kzero
#SBATCH --nodes=2                  # SITE
#SBATCH --ntasks-per-node=2        # SITE: one rank per socket or NUMA domain
#SBATCH --cpus-per-task=16         # SITE: the cores of one such domain; each becomes a thread
#SBATCH --time=04:00:00            # SITE
##SBATCH --partition=NAME --account=NAME   # SITE: remove one # if they are needed

# The warning: USR1 to every rank, at least this many seconds before the limit. It must cover the
# longest step and the writing of a checkpoint. Slurm may send it up to a minute early.
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=kzero-%j.out

# SITE: modules that the program was built with, for instance
# module load gcc mpich hdf5

set -u
if [ $# -eq 0 ]; then
  echo "usage: sbatch $0 DECK.toml [key=value ...]" >&2
  exit 2
fi
program=${KZERO:-build/release/kzero}
restarts=${SLURM_RESTART_COUNT:-0}
max_restarts=${KZERO_MAX_RESTARTS:-100}  # ends a job that would requeue for ever

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
export OMP_PROC_BIND=${OMP_PROC_BIND:-false}  # srun binds

echo "$(date '+%F %T') job $SLURM_JOB_ID, restart $restarts, on $SLURM_JOB_NODELIST"
# SITE: --mpi is the process manager of the MPI library (pmi2 for MPICH; see srun --mpi=list).
# A rank that is done must not end the others: they may still write (--kill-on-bad-exit=0).
# Slurm 22.05 and later does not hand --cpus-per-task on to srun by itself.
srun --mpi="${KZERO_SRUN_MPI:-pmi2}" --cpus-per-task="$OMP_NUM_THREADS" --kill-on-bad-exit=0 \
  "$program" train "$@"
code=$?

# 75: stopped in time, with a checkpoint. Any other code is final: 0 is done, the rest are errors.
if [ $code -eq 75 ] && [ "$restarts" -lt "$max_restarts" ]; then
  echo "$(date '+%F %T') stopped in time: submitting job $SLURM_JOB_ID again"
  scontrol requeue "$SLURM_JOB_ID" && sleep 60  # Slurm ends this script while it sleeps
fi
exit $code
