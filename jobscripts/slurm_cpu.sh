#!/bin/bash
# Trains on CPU nodes under Slurm for as long as necessary. A job whose time is nearly up stops with a checkpoint and
# submits itself again, under the same job number. See docs/running.md.
#
#   sbatch jobscripts/slurm_cpu.sh input/DECK.toml [train.steps=1000 ...]
#
# Run it from the repository's root, or set KZERO_JOBSCRIPTS to the folder of job.sh. The deck must name a
# checkpoint.folder that all nodes see. A site changes the lines marked SITE; options given to sbatch override them.

#SBATCH --job-name=kzero
#SBATCH --nodes=1-2                # SITE: MIN-MAX; a requeued job can start on fewer nodes
#SBATCH --no-kill                  # the job keeps its other nodes if one fails
#SBATCH --ntasks-per-node=4        # SITE: the node's cores divided by those of a rank
#SBATCH --cpus-per-task=8          # SITE: 4 to 8 cores of one NUMA domain; each becomes a thread (docs/running.md)
#SBATCH --time=04:00:00            # SITE
##SBATCH --partition=NAME --account=NAME   # SITE: remove one # if they are needed
#SBATCH --output=kzero-%j.out
#SBATCH --open-mode=append         # a restart appends to the same file
#SBATCH --requeue
# The second warning, in case run.stop_margin is too short: USR1 to every rank. Slurm may send it a minute early.
#SBATCH --signal=USR1@30

# SITE: the modules that the program was built with, for instance
# module load gcc mpich hdf5
# source "${KZERO_JOBSCRIPTS:-jobscripts}/machines/cluster.env"  # if it has them

batch=slurm
usage="slurm_cpu.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

# SITE: --mpi must match the MPI library's process manager (pmi2 for MPICH, see srun --mpi=list).
# Slurm 22.05 and later passes --cpus-per-task to srun only if it is given again.
launcher=(srun --mpi="${KZERO_SRUN_MPI:-pmi2}" --cpus-per-task="$OMP_NUM_THREADS")
train "$@"
