# Runs on a node of a Slurm job and watches over the node where the job's script runs. batch_slurm.sh starts it as a step of the job.
#
#   bash slurm_guard.sh JOB NODE TASKS
#
# KZERO_GUARD_SECONDS    how often it looks (60)
#
# NODE is the node of the script. TASKS is the number of tasks for a restart without it.
#
# If that node dies, Slurm (22.05) lets a job with --no-kill continue without its script until its time is up. The guard
# requeues the job instead. A job of a chain cannot be requeued. The guard cancels it, so that the next one can start.

job=$1 node=$2 tasks=$3
output=$(scontrol show job "$job" | sed -n 's/^ *StdOut=//p')
say() { echo "$(date '+%F %T') job $job: $*" >>"$output"; }

while sleep "${KZERO_GUARD_SECONDS:-60}"; do
  # Without slurmstepd, its parent, nobody would end the guard.
  [[ $(cut -d' ' -f4 "/proc/$$/stat") == "$PPID" ]] || exit
  # Slurm removes a dead node from the job. No answer from the controller means nothing.
  now=$(squeue -h -j "$job" -t RUNNING -o %N) && [[ -n $now ]] || continue
  if scontrol show hostnames "$now" | grep -qxF -e "$node"; then
    continue
  fi
  say "lost $node, where its script ran: submitted again"
  trap '' TERM  # a requeued job gets it; Slurm would end slurm_requeue.sh if this process ended
  if ! bash "$(dirname "$0")/slurm_requeue.sh" "$job" NumTasks="$tasks" StartTime=now+15; then
    say "lost $node, where its script ran, and cannot be requeued: cancelled"
    scancel "$job"
  fi
  exit
done
