#!/bin/bash
# A template for PBS (PBS Professional, OpenPBS). Tested only with stand-ins for PBS's commands, not at a centre. Run it
# where qsub works. It submits itself, and again when a job's time is nearly up; see batch_pbs.sh.
#
#   bash jobscripts/machines/pbs.sh input/DECK.toml [train.steps=1000 ...]
#   KZERO_QSUB_OPTIONS="-A PROJECT -q NAME" bash jobscripts/machines/pbs.sh ...
#
# Facts: manual pages qsub(1) of POSIX and qsub(1B) of Torque; WarpX, Tools/machines/polaris-alcf; ALCF, user guide of Polaris
# (tolerate_node_failures). Torque and older PBS do not know the option -W below: remove it there.

#PBS -N kzero
#PBS -l select=2:ncpus=32:mpiprocs=4:ompthreads=8
#PBS -l walltime=04:00:00
#PBS -l place=scatter:excl
#PBS -j oe
#PBS -r y
#PBS -W tolerate_node_failures=all

# SITE: nodes, cores and ranks per node above; modules in cluster.env
source "${KZERO_JOBSCRIPTS:-jobscripts}/machines/cluster.env" || exit

batch=pbs
batch_command=bash
usage="jobscripts/machines/pbs.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

# SITE: the launcher of the MPI that kzero was built with, up to the number of ranks. If the launcher does not read
# PBS_NODEFILE, write NODEFILE for the file with one line per rank: mpiexec --hostfile NODEFILE -n (HPE Cray PALS)
read -ra launcher <<<"${KZERO_MPIEXEC:-mpiexec -n}"
train "$@"
