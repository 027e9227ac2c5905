#!/bin/bash
# Alps at CSCS: one rank per GH200. Not tested there; see alps.env. Stops and submits itself again as slurm_cpu.sh does.
#
#   sbatch --account=PROJECT jobscripts/machines/alps.sh input/DECK.toml [train.steps=1000 ...]

#SBATCH --job-name=kzero
#SBATCH --nodes=1-2                # SITE: MIN-MAX; a requeued job can start on fewer nodes
#SBATCH --no-kill                  # the job keeps its other nodes if one fails
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=24:00:00            # the normal partition's limit
#SBATCH --uenv=prgenv-gnu/24.11:v2 # SITE: the uenv that kzero was built in
#SBATCH --view=default
#SBATCH --output=kzero-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@30

source "${KZERO_JOBSCRIPTS:-jobscripts}/machines/alps.env" || exit
usage="machines/alps.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

launcher=(srun --mpi="$KZERO_SRUN_MPI" --cpus-per-task="$OMP_NUM_THREADS" --gpu-bind=none)
train "$@"
