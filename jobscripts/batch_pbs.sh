# The part of job.sh for PBS (PBS Professional, OpenPBS, Torque). If a script that sources it is run outside of a job, as
# bash SCRIPT DECK.toml ..., it submits itself with its #PBS lines: qsub passes no arguments to a script, starts it in the home
# folder, and keeps a copy of it elsewhere. Within a job it runs.
#
# KZERO_QSUB_OPTIONS   further options of qsub, such as "-A PROJECT -q NAME"; they override the #PBS lines and also apply to
#                      restarts
#
# PBS kills a job that loses a node, unless the job was submitted with -W tolerate_node_failures=all (OpenPBS 19 and later, PBS
# Professional). With this option the job launches again on the other nodes. It does not help if the first node is lost, where
# the script runs.
#
# A job that stopped in time submits a new one, with another number. qrerun would keep the number, but at most sites only
# operators may use it.

# Variables that a restart needs and qsub does not pass on.
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
mapfile -t listed <"$PBS_NODEFILE"  # one line per rank (mpiprocs)
source "$here/batch_hosts.sh"
use_hosts "${listed[@]}"
allocation=${nodes[*]}
threads=${threads:-${OMP_NUM_THREADS:-1}}  # PBS sets it to ompthreads, if that is given

# The job's end: its start, as the server reports it, plus its wall time. If the server does not answer or lacks either,
# only the deck's run.wall_limit applies.
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
    say "$1: continues as job $next"
  else
    say "$1, but qsub does not work from here; submit the same again: bash $script ${arguments[*]}"
  fi
}
