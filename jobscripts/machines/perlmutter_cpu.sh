#!/bin/bash
# Perlmutter's CPU nodes: one rank per NUMA domain of 16 cores. Not tested there; see perlmutter_cpu.env. Stops and
# submits itself again as slurm_cpu.sh does.
#
#   sbatch --account=PROJECT jobscripts/machines/perlmutter_cpu.sh input/DECK.toml [train.steps=1000 ...]

#SBATCH --job-name=kzero
#SBATCH --nodes=1-2                # SITE: MIN-MAX; a requeued job can start on fewer nodes
#SBATCH --no-kill                  # the job keeps its other nodes if one fails
#SBATCH --constraint=cpu
#SBATCH --qos=regular
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=16
#SBATCH --hint=nomultithread       # the cores have two threads each
#SBATCH --exclusive
#SBATCH --time=04:00:00            # SITE
#SBATCH --output=kzero-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@30

source "${KZERO_JOBSCRIPTS:-jobscripts}/machines/perlmutter_cpu.env" || exit
usage="machines/perlmutter_cpu.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

launcher=(srun --mpi="$KZERO_SRUN_MPI" --cpus-per-task="$OMP_NUM_THREADS" --cpu-bind=cores)
train "$@"
