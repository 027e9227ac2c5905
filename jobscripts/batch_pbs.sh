# The part of job.sh for PBS (PBS Professional, OpenPBS, Torque). A script that sources it submits itself when it is run outside
# of a job, as bash SCRIPT DECK.toml ..., with its #PBS lines: qsub takes no arguments for a script, starts it in the home folder,
# and keeps a copy of it elsewhere. Within a job it runs.
#
# KZERO_QSUB_OPTIONS   further options of qsub, such as "-A PROJECT -q NAME"; they win over the #PBS lines, restarts have them too
#
# PBS kills a job that loses a node, unless the job was submitted with -W tolerate_node_failures=all (OpenPBS 19 and later, PBS
# Professional). With it the job launches again on the other nodes. The first node, where the script runs, is an exception.
#
# A job that stopped in time submits a new one, with another number: qrerun, which would keep it, is the operators' at most sites.

# What a restart needs to know, and qsub does not hand on.
kept=(KZERO KZERO_JOBSCRIPTS KZERO_MAX_RESTARTS KZERO_MAX_RELAUNCH KZERO_PROBE_SECONDS KZERO_FIRST_RANKS KZERO_MPIEXEC KZERO_QSUB_OPTIONS)

# submit RESTARTS: prints the number of the new job
submit() {
  {
    echo '#!/bin/bash'
    grep '^#PBS ' "$script"
    printf 'cd %q || exit\n' "$PWD"
    for name in "${kept[@]}"; do
      [[ -z ${!name-} ]] || printf 'export %s=%q\n' "$name" "${!name}"
    done
    printf 'export KZERO_RESTART=%d\nexec bash' "$1"
    printf ' %q' "$(realpath "$script")" "${arguments[@]}"
    echo
  } | qsub ${KZERO_QSUB_OPTIONS-}  # several words
}

if [[ -z ${PBS_JOBID-} ]]; then
  submit 0
  exit
fi

job=${PBS_JOBID%%.*}
restarts=${KZERO_RESTART:-0}
mapfile -t listed <"$PBS_NODEFILE"  # a line for each rank (mpiprocs)
source "$here/batch_hosts.sh"
use_hosts "${listed[@]}"
allocation=${nodes[*]}
threads=${threads:-${OMP_NUM_THREADS:-1}}  # PBS sets it to ompthreads, where that is given

# The job's end: its start, as the server has it, and its wall time. A server that does not answer, or says neither, leaves it to
# the deck's run.wall_limit.
facts=$(qstat -f "$PBS_JOBID" 2>/dev/null) || facts=
start=$(sed -n 's/^ *\(stime\|start_time\) = //p' <<<"$facts" | head -n 1)
limit=$(sed -n 's/^ *Resource_List.walltime = //p' <<<"$facts")
if [[ -n $start && $limit =~ ^([0-9]+):([0-9]+):([0-9]+)$ ]]; then
  seconds=$((10#${BASH_REMATCH[1]} * 3600 + 10#${BASH_REMATCH[2]} * 60 + 10#${BASH_REMATCH[3]}))
  export KZERO_JOB_END_TIME=$(($(date -d "$start" +%s) + seconds))
fi

submit_again() {
  local next
  if next=$(submit $((restarts + 1))); then
    say "$1: goes on as job $next"
  else
    say "$1, but qsub does not work from here; submit the same again: bash $script ${arguments[*]}"
  fi
}
