#!/bin/bash
# A template for Flux (El Capitan, Tuolumne and similar machines). Tested only with a stand-in for flux, not at a
# centre. Run it where flux batch works. It submits itself, and again when a job's time is nearly up; see batch_flux.sh.
#
#   bash jobscripts/machines/flux.sh input/DECK.toml [train.steps=1000 ...]
#   KZERO_FLUX_OPTIONS="-q NAME --bank=NAME" bash jobscripts/machines/flux.sh ...
#
# Facts: flux-core, doc/man1/flux-batch.rst, flux-job.rst, doc/man7/flux-environment.rst, flux-broker-attributes.rst (2025).

# flux: --job-name=kzero
# flux: --nodes=2
# flux: --exclusive
# flux: --time-limit=4h
# flux: --output=kzero-{{id}}.out
# flux: --setopt=exit-timeout=none
# flux: --broker-opts=-Stbon.topo=kary:0

ranks_per_node=4  # SITE: the node's cores divided by those of a rank
threads=8         # SITE: 4 to 8 cores of one NUMA domain (docs/running.md)
# SITE: modules in cluster.env
source "${KZERO_JOBSCRIPTS:-jobscripts}/machines/cluster.env" || exit

batch=flux
batch_command=bash
usage="jobscripts/machines/flux.sh DECK.toml [key=value ...]"
source "${KZERO_JOBSCRIPTS:-jobscripts}/job.sh" || exit

launcher=(flux run --cores-per-task="$threads")
train "$@"
