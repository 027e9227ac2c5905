# Slurm's part of job.sh.

job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}
restarts=${SLURM_RESTART_COUNT:-0}
nodes=$SLURM_JOB_NODELIST
threads=${SLURM_CPUS_PER_TASK:-1}

# The program stops run.stop_margin before the job's end, which newer Slurms (not 22.05) put into the environment.
if [[ -z ${SLURM_JOB_END_TIME-} ]]; then
  end=$(squeue -h -j "$job" -o %e)  # a date, unless the controller does not answer or there is no limit
  if [[ $end == ????-??-??T* ]]; then
    SLURM_JOB_END_TIME=$(date -d "$end" +%s)
    export SLURM_JOB_END_TIME
  fi
fi

submit_again() {
  say "stopped in time with a checkpoint: submitted again"
  scontrol requeue "$job" && sleep 60  # Slurm ends this script while it sleeps
}

end_chain() { scancel --name="$KZERO_CHAIN" --state=PENDING; }
