#!/bin/bash
# Frontier's CPUs: eight ranks a node, one for each region of L3 cache. It has not run there; frontier.env says more, and why no GPU.
# Stops and submits itself again as slurm_cpu.sh does.
#
#   sbatch --account=PROJECT jobscripts/machines/frontier.sh input/DECK.toml [train.steps=1000 ...]

#SBATCH --job-name=kzero
#SBATCH --nodes=1-2                # SITE: MIN-MAX; a requeued job can start on fewer nodes
#SBATCH --no-kill                  # the job keeps its other nodes if one fails
#SBATCH --partition=batch
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7          # the first core of each eight is the system's
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
