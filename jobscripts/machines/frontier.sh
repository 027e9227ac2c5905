#!/bin/bash
# Frontier's CPUs: eight ranks per node, one for each region of L3 cache. Not tested there; frontier.env explains why it
# uses no GPU. Stops and submits itself again as slurm_cpu.sh does.
#
#   sbatch --account=PROJECT jobscripts/machines/frontier.sh input/DECK.toml [train.steps=1000 ...]

#SBATCH --job-name=kzero
#SBATCH --nodes=1-2                # SITE: MIN-MAX; a requeued job can start on fewer nodes
#SBATCH --no-kill                  # the job keeps its other nodes if one fails
#SBATCH --partition=batch
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7          # the first core of every eight is reserved for the system
#SBATCH --exclusive
#SBATCH --time=02:00:00            # the limit of jobs up to 91 nodes; 6 h up to 183, 12 h above
#SBATCH --output=kzero-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@30

source "${KZERO_JOBSCRIPTS:-jobscripts}/machines/frontier.env" || exit
usage="machines/frontier.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

# Home folders are read-only on compute nodes: submit from below /lustre/orion.
launcher=(srun --mpi="$KZERO_SRUN_MPI" --cpus-per-task="$OMP_NUM_THREADS" --cpu-bind=cores)
train "$@"
