#!/bin/bash
# Perlmutter's GPU nodes: one rank per A100. Not tested there; see perlmutter_gpu.env. Stops and submits itself again as
# slurm_cpu.sh does.
#
#   sbatch --account=PROJECT_g jobscripts/machines/perlmutter_gpu.sh input/DECK.toml [train.steps=1000 ...]

#SBATCH --job-name=kzero
#SBATCH --nodes=1-2                # SITE: MIN-MAX; a requeued job can start on fewer nodes
#SBATCH --no-kill                  # the job keeps its other nodes if one fails
#SBATCH --constraint=gpu           # gpu&hbm80g: the nodes with 80 GB per GPU
#SBATCH --qos=regular
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=16         # a quarter of the cores
#SBATCH --hint=nomultithread       # they have two threads each
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=04:00:00            # SITE
#SBATCH --output=kzero-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@30

source "${KZERO_JOBSCRIPTS:-jobscripts}/machines/perlmutter_gpu.env" || exit
usage="machines/perlmutter_gpu.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

# Every rank sees all four GPUs and uses the one with its number within the node. GPUs are numbered against the order of
# the cores here (WarpX), so rank 0 computes on the cores that are farthest from its GPU. Results are correct, but host
# copies take longer.
launcher=(srun --mpi="$KZERO_SRUN_MPI" --cpus-per-task="$OMP_NUM_THREADS" --cpu-bind=cores --gpu-bind=none)
train "$@"
