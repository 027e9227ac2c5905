# Slurm's part of job.sh.
#
# The scripts ask for --no-kill, so that a job that loses a node keeps the others. They ask for a range of nodes, so that a job that
# is requeued can start without the node. With a fixed number of nodes the job would wait until the node is repaired.

if [[ -z ${SLURM_JOB_ID-} ]]; then
  echo "$script: this is not a Slurm job; submit it: sbatch $script ${arguments[*]}. Without Slurm, jobscripts/mpiexec.sh" \
    "trains on hosts in a file, and mpiexec -n RANKS kzero train ${arguments[*]} on this one" >&2
  exit 2
fi
unset "${!SQUEUE_@}"  # filters and formats of squeue
facts=$(scontrol show job "$SLURM_JOB_ID" 2>/dev/null) || facts=  # FIELD=VALUE, several on a line

# sbatch passes on what a login shell, or the job that it was called in, has left in the environment. srun would take it for its own
# options. This removes what Slurm has not set for this job. It keeps everything if the controller does not answer.
forget_leftovers() {
  local name
  local -A fields=(
    [SLURM_MEM_PER_NODE]='MinMemoryNode=[0-9.]*[1-9]' [SLURM_MEM_PER_CPU]='MinMemoryCPU=[0-9.]*[1-9]' [SLURM_MEM_PER_GPU]='MemPerTres='
    [SLURM_GPUS]='TresPerJob=' [SLURM_GPUS_PER_NODE]='TresPerNode=' [SLURM_GPUS_PER_SOCKET]='TresPerSocket='
    [SLURM_GPUS_PER_TASK]='TresPerTask=[^[:space:]]*gpu' [SLURM_CPUS_PER_GPU]='CpusPerTres='
    [SLURM_TRES_PER_TASK]='TresPerTask=' [SLURM_NTASKS_PER_GPU]='NtasksPerTRES:'
    [SLURM_NTASKS_PER_SOCKET]='NtasksPerN:B:S:C=[^:]*:[^:]*:[1-9]' [SLURM_NTASKS_PER_CORE]='NtasksPerN:B:S:C=[^:]*:[^:]*:[^:]*:[1-9]'
    [SLURM_ARRAY_JOB_ID]='ArrayJobId=' [SLURM_ARRAY_TASK_ID]='ArrayJobId=' [SLURM_RESTART_COUNT]='Restarts=[1-9]'
  )
  # Slurm does not set these for a script.
  unset SLURM_WORKING_DIR SLURM_REMOTE_CWD SLURM_STDINMODE SLURM_STDOUTMODE SLURM_STDERRMODE SLURM_HOSTFILE \
    SLURM_TIMELIMIT SLURM_IMMEDIATE SLURM_EXCLUSIVE SLURM_EXIT_ERROR SLURM_STEP_GRES SLURM_GRES
  if [[ -n ${SLURM_CPU_BIND_TYPE-} ]]; then  # the cores of the step that sbatch was called in
    unset "${!SLURM_CPU_BIND@}"
  fi
  [[ -n $facts ]] || return 0
  for name in "${!fields[@]}"; do
    [[ $facts =~ (^|[[:space:]])${fields[$name]} ]] || unset "$name"
  done
  if [[ -n ${SLURM_CPUS_PER_TASK-} && $facts =~ [[:space:]]CPUs/Task=([0-9]+) ]]; then
    SLURM_CPUS_PER_TASK=${BASH_REMATCH[1]}
  fi
}
forget_leftovers

# The ranks get the environment of this script, also if sbatch was told to pass nothing on (--export), which srun would follow.
export SLURM_EXPORT_ENV=ALL SRUN_EXPORT_ENV=ALL

# chain.sh gives the jobs of a chain its name. KZERO_CHAIN may be missing here, or left over from a job that sbatch was called in.
if [[ ${SLURM_JOB_NAME-} =~ ^kzero-[0-9]{8}-[0-9]{6}-[0-9]+$ ]]; then
  export KZERO_CHAIN=$SLURM_JOB_NAME
else
  unset KZERO_CHAIN
fi

require_numbers SLURM_RESTART_COUNT SLURM_MEM_PER_NODE SLURM_MEM_PER_CPU SLURM_CPUS_ON_NODE SLURM_CPUS_PER_TASK SLURM_ARRAY_TASK_ID \
  SLURM_JOB_END_TIME
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}
if [[ $facts == *HetJobId=* ]]; then
  say "a heterogeneous job: trains on its first part only"
fi

# job_field FORMAT: prints what squeue shows of this job. It also shows the other parts of a heterogeneous one.
job_field() {
  local parts
  parts=$(squeue -h -j "$job" -o "%A $1") && sed -n "s/^$SLURM_JOB_ID //p" <<<"$parts"
}

restarts=${SLURM_RESTART_COUNT:-0}
allocation=$SLURM_JOB_NODELIST
threads=${SLURM_CPUS_PER_TASK:-1}
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")

# Slurm writes 2(x3),1 for three nodes with two ranks each and a node with one. SLURM_NTASKS is not used: for a range of
# nodes some versions count the ranks of the smallest number of nodes.
ranks=0 ranks_per_node=0
IFS=, read -ra counts <<<"$SLURM_TASKS_PER_NODE"
for count in "${counts[@]}"; do
  [[ $count =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]] || continue
  ranks=$((ranks + BASH_REMATCH[1] * ${BASH_REMATCH[3]:-1}))
  ranks_per_node=$((BASH_REMATCH[1] > ranks_per_node ? BASH_REMATCH[1] : ranks_per_node))
done
allocated_ranks=$ranks

node_kib=
if ((${SLURM_MEM_PER_NODE:-0} > 0)); then
  node_kib=$((SLURM_MEM_PER_NODE * 1024))
elif ((${SLURM_MEM_PER_CPU:-0} > 0)); then
  node_kib=$((SLURM_MEM_PER_CPU * ${SLURM_CPUS_ON_NODE:-1} * 1024))
fi

# A requeued job may have another number of nodes. A file keeps the number of ranks of the first launch. The jobs of a chain share it.
ranks_file=${KZERO_CHAIN:-kzero-$job}.ranks
first_ranks=
if ((restarts > 0)) || [[ -n ${KZERO_CHAIN-} ]]; then
  read -r first_ranks <"$ranks_file"
fi 2>/dev/null
if [[ ! $first_ranks =~ ^[1-9][0-9]*$ ]]; then
  first_ranks=$ranks
  echo "$ranks" >"$ranks_file"
fi

# The program stops run.stop_margin before the job's end, which newer Slurms (not 22.05) put into the environment.
if ((${SLURM_JOB_END_TIME:-0} <= $(date +%s))); then
  unset SLURM_JOB_END_TIME
  end=$(SLURM_TIME_FORMAT=%s job_field %e)  # not a number without an answer or a limit
  if [[ $end =~ ^[1-9][0-9]{8,10}$ ]]; then
    export SLURM_JOB_END_TIME=$end
  fi
fi

# Ranks that are done must not end the others, which may still write (--kill-on-bad-exit=0). When the first rank has ended, the
# others have 45 s (--wait). Otherwise srun would wait for ranks on a dead node until Slurm notices its death, after SlurmdTimeout
# (300 s by default). The environment describes the entire allocation. A launch on a part of it therefore names its nodes, and shares
# (--overlap) what a lost launch may still hold.
launch() {
  local count=$1 where=()
  shift
  if [[ $KZERO_LAUNCH != 0 ]] || ((count != allocated_ranks)); then
    where=(--overlap --nodes="${#chosen[@]}" --nodelist="$(joined "${chosen[@]}")" --ntasks="$count")
    where+=(--ntasks-per-node="$((count < ranks_per_node ? count : ranks_per_node))")
    unset SLURM_NNODES SLURM_JOB_NUM_NODES SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE
  elif [[ ${SLURM_STEP_ID-} =~ ^[0-9]{1,9}$ ]]; then
    where=(--overlap)  # this script is a step itself (srun --pty bash), and its launch would wait for its end
  fi
  local command=("${bounded[@]}" "${launcher[@]}" --kill-on-bad-exit=0 --wait=45 "${where[@]}" "$@")
  if [[ $KZERO_LAUNCH == probe ]]; then
    "${command[@]}"
  else
    start_guard
    run_ranks "${command[@]}"
  fi
}

# A signal to this script, as by sbatch --signal=B:USR1@300, stops the ranks. bash runs a trap at once only while it waits.
ranks_process=
run_ranks() {
  local code
  "$@" <&0 &
  ranks_process=$!
  while true; do
    wait "$ranks_process"
    code=$?
    ((code > 128)) && kill -0 "$ranks_process" 2>/dev/null || break
  done
  ranks_process=
  return "$code"
}

# pass_on SIGNAL: makes srun send SIGUSR1 to the ranks. Slurm sends SIGTERM also to the script of a job that it ends.
pass_on() {
  if [[ $1 == TERM && $(job_field %T) != RUNNING ]]; then
    trap - TERM
    kill -TERM $$
  elif [[ -n $ranks_process ]]; then
    say "SIG$1: stopping the ranks with a checkpoint"
    kill -USR1 "$ranks_process" 2>/dev/null
  fi
}
for signal in HUP INT USR1 USR2 ALRM XCPU TERM; do
  # shellcheck disable=SC2064  # expanded now
  trap "pass_on $signal" "$signal"
done

# Slurm takes a node that it has found dead out of the job.
believed_up() {
  local now
  if now=$(job_field %N) && [[ -n $now ]]; then
    scontrol show hostnames "$now"
  else
    printf '%s\n' "${nodes[@]}"
  fi
}

guard_process=
end_guard() { [[ -z $guard_process ]] || kill "$guard_process" 2>/dev/null; }
trap end_guard EXIT

# Makes the last node watch over this one, where the script runs (slurm_guard.sh explains why). The guard starts late, because a short
# job needs none, and because the training should remain the first step of the job.
start_guard() {
  end_guard
  guard_process=
  if ((${#chosen[@]} > 1)); then
    run_guard &>/dev/null &
    guard_process=$!
  fi
}

run_guard() {
  unset KZERO_STARTED_BY  # the guard is not a rank
  sleep "${KZERO_GUARD_SECONDS:-60}"
  exec srun --overlap --mpi=none --nodes=1 --nodelist="${chosen[-1]}" --ntasks=1 --ntasks-per-node=1 \
    bash "$here/slurm_guard.sh" "$job" "$SLURMD_NODENAME" "$(tasks_without 1)"
}

# tasks_without NODES: prints the number of tasks for a restart without that many nodes and without those in $missing. Slurm (22.05)
# gives a job the tasks of its first allocation. A restart would wait for as many nodes, whatever the range. Slurm allocates no more
# nodes than a job has tasks, and no fewer than the tasks fill. A job with --ntasks-per-node gets a new number when it starts.
tasks_without() {
  local left=$((${#nodes[@]} - ${#missing[@]} - $1))
  left=$((left < 1 ? ranks_per_node : left * ranks_per_node))
  echo $((left < ${#nodes[@]} ? left : ${#nodes[@]}))
}

submit_again() {
  local changes=() refusal
  trap '' TERM  # Slurm sends it to a job that is requeued
  if ((${#missing[@]} > 0)); then
    changes=(NumTasks="$(tasks_without 0)")
    ((${#lost[@]} == 0)) || changes+=(StartTime=now+15)  # instead of two minutes from now
  fi
  if refusal=$(bash "$here/slurm_requeue.sh" "$job" "${changes[@]}" 2>&1); then
    say "$1: submitted again"
    exit
  fi
  trap - TERM
  say "$1, but Slurm does not submit this job again (${refusal##*$'\n'}); submit the same again for the rest"
}

end_chain() { scancel --name="$KZERO_CHAIN" --state=PENDING; }
