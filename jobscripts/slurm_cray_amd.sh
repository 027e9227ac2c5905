#!/bin/bash
# A template for HPE Cray EX nodes with one 64-core AMD CPU and four MI250X, which programs see as eight GPUs (LUMI-G,
# Frontier and similar machines): one rank per GPU, on the cores next to it. It stops and submits itself again as
# slurm_cpu.sh does. Not tested: the build for HIP was never linked. The site must check every line.
#
#   sbatch jobscripts/slurm_cray_amd.sh input/DECK.toml [train.steps=1000 ...]

#SBATCH --job-name=kzero
#SBATCH --nodes=1-2                # SITE: MIN-MAX; a requeued job can start on fewer nodes
#SBATCH --no-kill                  # the job keeps its other nodes if one fails
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --exclusive
#SBATCH --time=04:00:00            # SITE
#SBATCH --partition=NAME           # SITE
#SBATCH --account=NAME             # SITE
#SBATCH --output=kzero-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue                  # SITE: if it is not allowed, use jobscripts/chain.sh
#SBATCH --signal=USR1@30

# SITE: the programming environment that kzero was built with. HDF5 must be the parallel one.
module load PrgEnv-gnu craype-x86-trento craype-accel-amd-gfx90a rocm cray-hdf5-parallel

batch=slurm
usage="slurm_cray_amd.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

export OMP_NUM_THREADS=7             # the first core of every eight is reserved for the system
export MPICH_GPU_SUPPORT_ENABLED=1   # Cray MPICH accepts device pointers

# GPU N of a node is attached to these cores (SITE: rocm-smi --showtoponuma); rank N uses GPU N.
masks=fe000000000000,fe00000000000000,fe0000,fe000000,fe,fe00,fe00000000,fe0000000000

launcher=(srun --cpu-bind="mask_cpu:$masks" --gpu-bind=none)
train "$@"
