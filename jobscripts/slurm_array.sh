#!/bin/bash
# A sweep: one training for each line of settings in a file, each with its own checkpoints, metrics and restarts.
#
#   sbatch --array=1-3 jobscripts/slurm_array.sh input/DECK.toml input/sweep.txt [key=value ...]
#
# Task N uses line N, not counting empty lines and lines that begin with #. Its files go to runs/sweep/N, if the file of settings
# is called sweep.txt. Settings must not contain blanks. "%2" after the range runs two tasks at a time.

#SBATCH --job-name=kzero-sweep
#SBATCH --nodes=1                  # SITE: per task; for several nodes MIN-MAX, with --no-kill as in slurm_cpu.sh
#SBATCH --ntasks-per-node=4        # SITE
#SBATCH --cpus-per-task=8          # SITE
#SBATCH --time=04:00:00            # SITE
##SBATCH --partition=NAME --account=NAME   # SITE: remove one # if they are needed
#SBATCH --output=kzero-%A_%a.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@30

# SITE: for instance
# module load gcc mpich hdf5

batch=slurm
usage="--array=1-LINES slurm_array.sh DECK.toml SETTINGS.txt [key=value ...]"
(($# >= 2)) || set --
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

deck=$1 file=$2
shift 2
line=$(grep -Ev '^[[:space:]]*(#|$)' <"$file" | sed -n "${SLURM_ARRAY_TASK_ID:?the job has no --array}p")
if [[ -z $line ]]; then
  say "$file has no line $SLURM_ARRAY_TASK_ID of settings" >&2
  exit 2
fi
read -ra settings <<<"$line"
folder=runs/$(basename -- "$file" .txt)/$SLURM_ARRAY_TASK_ID
overrides+=("checkpoint.folder=$folder/checkpoints" "run.metrics=$folder/metrics.jsonl")

launcher=(srun --mpi="${KZERO_SRUN_MPI:-pmi2}" --cpus-per-task="$OMP_NUM_THREADS")
train "$deck" "${settings[@]}" "$@"
