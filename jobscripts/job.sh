# The common part of all job scripts, for every batch system. Job scripts source it inside the job. Do not submit it itself.
#
# Sets      $kzero       the program: $KZERO, or build/release/kzero in the working folder ($preset for another build), or
#                        kzero in PATH
#           $overrides   settings of the job, for the end of the program's command line
#           $job         the job's number as the batch system shows it
# Reads     $launcher    array, set by the script before it calls train: the command that starts ranks, with the site's options
# Defines   train ARGUMENT...   launches kzero train with the arguments and $overrides, and again if a launch is lost
#                        (relaunch.sh). Ends the script through finish.
#           finish CODE  ends the script. If the program's exit code asks for it, first submits the job again. CODE is the
#                        launcher's exit code; it counts only if the program has not written its own.
#
# KZERO_MAX_RESTARTS     how often a job may submit itself again (100): ends a job that would continue for ever
# KZERO_CHAIN            set by chain.sh: the name of a chain of jobs, in which each job resumes where the previous one stopped
#
# batch_NAME.sh in this folder contains the parts that depend on the batch system (NAME is $batch, or slurm). It
#   sets     $job, $restarts (how often this job was submitted again), $threads (per rank), and the job's end in the environment.
#            $ranks_file, if there is one, is removed when the job has ended for good.
#   defines  submit_again WHY, which prints a message if it cannot submit, end_chain if chain.sh supports the batch system,
#            and everything that relaunch.sh reads.

set -u +efC  # SHELLOPTS in the environment may have set the others
if (($# == 0)); then
  echo "usage: ${batch_command:-sbatch [OPTIONS]} ${usage:-SCRIPT DECK.toml [key=value ...]}" >&2
  exit 2
fi

# Matched before arithmetic or a path uses them: bash runs commands that are in the text of a number, as in a[$(COMMAND)].
whole_number='0|[1-9][0-9]{0,17}'
host_name='[A-Za-z0-9][A-Za-z0-9._-]*'

# require_numbers NAME...: ends the script unless each of the variables is unset, empty or a whole number.
require_numbers() {
  local name
  for name in "$@"; do
    if [[ ! ${!name-} =~ ^($whole_number)?$ ]]; then
      printf '%s is %q; expected a whole number\n' "$name" "${!name}" >&2
      exit 2
    fi
  done
}

# require_host_names NAME...: ends the script unless each is the name of a host.
require_host_names() {
  local name
  for name in "$@"; do
    if [[ ! $name =~ ^$host_name$ ]]; then
      printf 'a host of this job is called %q; expected letters, digits and "._-"\n' "$name" >&2
      exit 2
    fi
  done
}

say() { echo "$(date '+%F %T') job $job: $*"; }

# joined WORD...: prints the words with commas between them.
joined() { (IFS=,; echo "$*"); }

script=$0 arguments=("$@")
here=$(dirname "${BASH_SOURCE[0]}")
require_numbers KZERO_MAX_RESTARTS KZERO_MAX_RELAUNCH KZERO_RESTART KZERO_FIRST_RANKS
source "$here/batch_${batch:-slurm}.sh" || exit
require_host_names "${nodes[@]}"
for part in deck nodes relaunch; do
  source "$here/$part.sh" || exit
done

stop_file=kzero-$job.stop
end_file=kzero-$job.end  # written by the program itself, because launchers lose exit codes
rm -f "$end_file"
overrides=("run.stop_file=$stop_file" "run.end_file=$end_file")

kzero=${KZERO:-build/${preset:-release}/kzero}
if [[ -z ${KZERO-} && ! -x $kzero ]]; then
  kzero=$(command -v kzero) || { echo "neither build/${preset:-release}/kzero nor kzero in PATH; KZERO can name one" >&2; exit 1; }
fi

# Threads per rank. The launcher binds ranks to cores. OpenMP, which knows only one rank, must not bind them again.
export OMP_NUM_THREADS=$threads
export OMP_PROC_BIND=${OMP_PROC_BIND:-false}

# Prints the exit code that the program wrote into its end file. Prints nothing if the program did not end in an orderly way.
told_code() { sed -n 's/.*"exit_code":\([0-9]*\).*/\1/p' "$end_file" 2>/dev/null; }

# why_again CODE: prints why a job that ended with this exit code is submitted again. Prints nothing if it is not.
why_again() {
  if (($1 == 75)); then
    echo "stopped in time with a checkpoint"
  elif ((${#lost[@]} > 0)); then
    echo "lost ${lost[*]}"
  elif (($1 == 3 && ${#missing[@]} > 0)); then
    echo "does not fit memory without ${missing[*]}"
  fi
}

finish() {
  local code=$1 told why
  told=$(told_code)
  if [[ -n $told && $told != "$code" ]]; then
    say "the launcher ended with $code, the program with $told"
    code=$told
  fi
  rm -f "$end_file"
  say "exit code $code"
  why=$(why_again "$code")
  if [[ -n $why && -e $stop_file ]]; then
    say "not submitted again, as $stop_file exists"
  elif [[ -n $why && -n ${KZERO_CHAIN-} ]]; then
    say "$why: the next job of the chain continues"
    exit "$code"
  elif [[ -n $why ]] && ((restarts < ${KZERO_MAX_RESTARTS:-100})); then
    submit_again "$why"  # does not return under Slurm if it succeeds
  fi
  rm -f ${ranks_file:+"$ranks_file"}
  if [[ -n ${KZERO_CHAIN-} ]]; then  # done, failed or told to stop: nothing to continue
    end_chain
  fi
  exit "$code"
}

say "restart $restarts on $allocation, $kzero $*; to stop it for good with a checkpoint: touch $PWD/$stop_file"
