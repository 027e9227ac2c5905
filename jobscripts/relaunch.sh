# The part of job.sh that keeps a job running inside its allocation. job.sh sources this file.
#
# `train` launches the program. If that launch is lost, `train` launches the program again on the nodes that answer.
# The run then resumes from its newest checkpoint with the same bits.
#
# KZERO_MAX_RELAUNCH     how often a job launches again before it has to be submitted again (3). 0 means never.
#
# The file of the batch system sets
#   $nodes             array: the nodes of the allocation, in the order of their ranks
#   $ranks             the number of ranks on all of them
#   $ranks_per_node    the largest number of ranks on a node
#   $first_ranks       the number of ranks of the job's first launch
#   $node_kib          the part of a node's memory that the job may use, in KiB. Empty or unset: all of it.
# and defines
#   launch RANKS COMMAND...   starts that many ranks of a command on the nodes in $chosen. The launcher comes after
#                             the words of $bounded.
#   believed_up               prints those of $nodes that the batch system has not found to be down, one a line

launched=0     # the number of the latest launch; the first one is 0
chosen=()      # array: the nodes of that launch
lost=()        # array: those of them that do not answer
missing=()     # array: all nodes of the allocation that do not answer
words=()       # array: the arguments of kzero train
bounded=()     # array: what limits the time of a probe
started_by=    # KZERO_STARTED_BY of the ranks. Unlike a job's number it is unique on machines of several clusters.
interrupted=   # not empty after a signal that ends the script
saved=         # the newest checkpoint at the start of the latest launch
max_ranks=    # the number of ranks of a launch on all nodes

# Another launch does not help after these exit codes: done, command line or deck, memory, files, diverged, stopped in time.
final_codes=' 0 2 3 4 5 75 '

# train ARGUMENT...: launches kzero train with the arguments and with the settings of the job, as often as needed.
# Then it ends the script.
train() {
  local code
  words=("$@" "${overrides[@]}")
  fit_restart
  max_ranks=$ranks
  choose "${nodes[@]}"
  export KZERO_JOB=$job
  started_by=$job-$(hostname)-$(date +%s%N)
  while true; do
    rm -f "$end_file"
    lost=()
    saved=$(newest_checkpoint)
    KZERO_LAUNCH=$launched KZERO_STARTED_BY=$started_by launch "$ranks" "$kzero" train "${words[@]}"
    code=$?
    if ((code == 0)) && [[ -z $(told_code) ]]; then
      code=1  # MPICH 4.1 to 4.2.1: two ranks ended badly at once (github.com/pmodels/mpich/issues/7057)
    fi
    if is_final "$code" || ! prepare_launch "$code"; then
      break
    fi
    ((++launched))
    say "launch $launched: $ranks ranks on ${#chosen[@]} of ${#nodes[@]} nodes${lost[*]:+ (no answer from ${lost[*]})}"
  done
  finish "$code"
}

# choose NODE...: sets $chosen to the first of the nodes, as many as $ranks ranks need.
choose() { chosen=("${@:1:(ranks + ranks_per_node - 1) / ranks_per_node}"); }

# is_final CODE: whether the job ends with the latest launch. CODE is the exit code of its launcher.
is_final() { [[ -n $(told_code) || $final_codes == *" $1 "* || -n $interrupted || -e $stop_file ]]; }

# prepare_launch CODE: finds the lost nodes, and sets $ranks and $chosen for the next launch. Fails if there is to be none,
# and prints why. CODE is the exit code of the latest launch.
prepare_launch() {
  local latest=("${chosen[@]}")
  say "launch $launched ended with code $1, and the program did not write how: asking ${#nodes[@]} nodes whether they answer"
  find_answering
  if ((${#answering[@]} == 0)); then
    say "not launched again: no node answers"  # probably nothing can be launched here, so no node counts as lost
    return 1
  fi
  mapfile -t lost < <(silent_among "${latest[@]}")
  mapfile -t missing < <(silent_among "${nodes[@]}")
  if ((launched >= ${KZERO_MAX_RELAUNCH:-3})); then
    say "not launched again: KZERO_MAX_RELAUNCH is ${KZERO_MAX_RELAUNCH:-3}"
    return 1
  fi
  use_answering && makes_progress "${latest[@]}" && has_memory "${chosen[@]}"
}

# Sets $ranks, $chosen and $words for a launch on the nodes that answer.
use_answering() {
  if ! plan "$first_ranks"; then
    say "not launched again: $problem"
    return 1
  fi
  set_micro_batch "$micro_batch"
  ranks=$((${#answering[@]} * ranks_per_node))
  ranks=$((ranks < max_ranks ? ranks : max_ranks))
  ranks=$((ranks - ranks % tensor))
  if ((ranks == 0)); then
    say "not launched again: the ${#answering[@]} nodes that answer have fewer ranks than grid.tensor = $tensor"
    return 1
  fi
  choose "${answering[@]}"
  if ! plan "$ranks"; then
    say "not launched again on $ranks ranks: $problem"
    return 1
  fi
}

# makes_progress NODE...: whether the next launch differs from the latest one, which ran on these nodes: by its nodes, or by
# the checkpoint from which it resumes. If neither differs, it would fail in the same way.
makes_progress() {
  if [[ ${chosen[*]} == "$*" && $(newest_checkpoint) == "$saved" ]]; then
    say "not launched again: the nodes of the launch answer, and it wrote no checkpoint, so the next one would fail in the same way"
    return 1
  fi
}
