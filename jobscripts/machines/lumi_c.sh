#!/bin/bash
# LUMI-C: one rank per NUMA domain of 16 cores. Not tested there; see lumi_c.env. Stops and submits itself again as
# slurm_cpu.sh does.
#
#   sbatch --account=project_NUMBER jobscripts/machines/lumi_c.sh input/DECK.toml [train.steps=1000 ...]

#SBATCH --job-name=kzero
#SBATCH --nodes=1-2                # SITE: MIN-MAX; a requeued job can start on fewer nodes
#SBATCH --no-kill                  # the job keeps its other nodes if one fails
#SBATCH --partition=standard       # full nodes; small: parts of a node
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=16
#SBATCH --mem=0                    # all memory for jobs of a node, 224 GB
#SBATCH --time=1-00:00:00          # SITE
#SBATCH --output=kzero-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@30

source "${KZERO_JOBSCRIPTS:-jobscripts}/machines/lumi_c.env" || exit
usage="machines/lumi_c.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

launcher=(srun --mpi="$KZERO_SRUN_MPI" --cpus-per-task="$OMP_NUM_THREADS" --cpu-bind=cores)
train "$@"
