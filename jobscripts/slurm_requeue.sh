# Requeues a Slurm job from within, and changes it at once.
#
#   bash slurm_requeue.sh JOB [FIELD=VALUE...]
#
# Slurm ends a requeued job with SIGTERM. The caller must ignore that signal and exit after this script. A controller
# without an accounting database makes the change only when the job has left its nodes; for that it waits 5 s.
trap '' TERM
job=$1
shift
scontrol requeue "$job" || exit
(($# > 0)) || exit 0
scontrol update JobId="$job" "$@" &>/dev/null &
for ((i = 0; i < 20; ++i)); do  # at most 2 s, because the job does not leave its nodes before this script has ended
  kill -0 $! 2>/dev/null || break
  sleep 0.1
done
