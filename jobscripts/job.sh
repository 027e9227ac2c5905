# What the job scripts of this folder do alike, under any batch system. They source it inside the job; it is no job script itself.
#
# Sets      $kzero       the program: $KZERO, or build/release/kzero under the working folder ($preset for another build), or kzero in PATH
#           $overrides   settings that belong to the job, for the end of the program's command line
#           $job         the job's number as the batch system shows it
# Defines   finish CODE  what follows from how the program ended; CODE is the launcher's, and counts where the program said
#                        nothing of its own. Ends the script.
#
# KZERO_MAX_RESTARTS     how often a job may submit itself again (100): ends a job that would go on for ever
# KZERO_CHAIN            set by chain.sh: the name of a chain of jobs, of which each goes on where the one before stopped
#
# batch_NAME.sh beside this file is what a batch system does in its own way (NAME is $batch, or slurm):
#   sets     $job, $restarts (how often this job was submitted again), $nodes, $threads (of a rank), and the job's end in the environment
#   defines  submit_again, which says so where it cannot, and end_chain where there is chain.sh

set -u
if (($# == 0)); then
  echo "usage: ${batch_command:-sbatch [OPTIONS]} ${usage:-SCRIPT DECK.toml [key=value ...]}" >&2
  exit 2
fi

say() { echo "$(date '+%F %T') job $job: $*"; }

script=$0 arguments=("$@")
source "$(dirname "${BASH_SOURCE[0]}")/batch_${batch:-slurm}.sh" || exit

stop_file=kzero-$job.stop
end_file=kzero-$job.end  # the program's own word, as launchers lose exit codes
rm -f "$end_file"
overrides=("run.stop_file=$stop_file" "run.end_file=$end_file")

kzero=${KZERO:-build/${preset:-release}/kzero}
if [[ -z ${KZERO-} && ! -x $kzero ]]; then
  kzero=$(command -v kzero) || { echo "neither build/${preset:-release}/kzero nor kzero in PATH; KZERO can name one" >&2; exit 1; }
fi

# A rank's threads. The launcher binds ranks to cores; OpenMP, which knows of one rank only, must not bind them again.
export OMP_NUM_THREADS=$threads
export OMP_PROC_BIND=${OMP_PROC_BIND:-false}

finish() {
  local code=$1 told
  told=$(sed -n 's/.*"exit_code":\([0-9]*\).*/\1/p' "$end_file" 2>/dev/null)
  if [[ -n $told && $told != "$code" ]]; then
    say "the launcher ended with $code, the program with $told"
    code=$told
  fi
  rm -f "$end_file"
  say "exit code $code"
  if ((code == 75)) && [[ -e $stop_file ]]; then
    say "not submitted again, as $stop_file exists"
  elif ((code == 75)) && [[ -z ${KZERO_CHAIN-} ]] && ((restarts < ${KZERO_MAX_RESTARTS:-100})); then
    submit_again
  elif ((code == 75)) && [[ -n ${KZERO_CHAIN-} ]]; then
    say "stopped in time with a checkpoint: the next job of the chain goes on"
    exit "$code"
  fi
  if [[ -n ${KZERO_CHAIN-} ]]; then  # done, failed or told to stop: nothing to go on with
    end_chain
  fi
  exit "$code"
}

say "restart $restarts on $nodes, $kzero $*; to stop it for good with a checkpoint: touch $PWD/$stop_file"
