#!/bin/bash
# Trains on NVIDIA GPUs under Slurm, one rank per GPU. Stops and submits itself again as slurm_cpu.sh does; see there
# and docs/running.md. Needs a program built with Kokkos for CUDA.
#
#   sbatch jobscripts/slurm_gpu.sh input/DECK.toml [train.steps=1000 ...]

#SBATCH --job-name=kzero
#SBATCH --nodes=1-2                # SITE: MIN-MAX; a requeued job can start on fewer nodes
#SBATCH --no-kill                  # the job keeps its other nodes if one fails
#SBATCH --gpus-per-node=4          # SITE: the GPUs of a node
#SBATCH --ntasks-per-node=4        # SITE: the same number
#SBATCH --cpus-per-task=16         # SITE: the node's cores divided by its GPUs
#SBATCH --time=04:00:00            # SITE
##SBATCH --partition=NAME --account=NAME   # SITE: remove one # if they are needed
#SBATCH --output=kzero-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@30

# SITE: for instance
# module load gcc cuda mpich hdf5
# source "${KZERO_JOBSCRIPTS:-jobscripts}/machines/cluster.env"  # if it has them

batch=slurm
preset=cuda
usage="slurm_gpu.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

# Every rank sees all GPUs of its node and uses the one with its number within the node. If each rank saw only one GPU
# (--gpus-per-task), GPUs could not copy from one another's memory.
launcher=(srun --mpi="${KZERO_SRUN_MPI:-pmi2}" --cpus-per-task="$OMP_NUM_THREADS" --gpu-bind=none)
train "$@"
