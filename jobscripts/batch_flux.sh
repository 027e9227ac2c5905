# The part of job.sh for Flux. If a script that sources it is run outside of a job, as bash SCRIPT DECK.toml ..., it submits
# itself with its "# flux:" lines. Within the job, which is its own instance of Flux, it runs.
#
# KZERO_FLUX_OPTIONS   further options of flux batch, such as "-q NAME --bank=NAME"; they override the script's and also apply
#                      to restarts
#
# Flux keeps a job that loses a node if the broker of that node has no children. With a flat tree of brokers
# (tbon.topo=kary:0) this is true for every node except the first one, where the script runs. Without exit-timeout=none Flux
# would end the job 30 s later.
#
# Flux runs no job twice. A job that stopped in time submits a new one, with another number, to the instance that it runs in
# (flux --parent).

# submit RESTARTS [OPTION OF flux]: prints the number of the new job, which gets this environment
submit() {
  local restarts=$1 path
  shift
  path=$(realpath "${KZERO_SCRIPT:-$script}")
  KZERO_SCRIPT=$path KZERO_RESTART=$restarts flux "$@" batch ${KZERO_FLUX_OPTIONS-} "$path" "${arguments[@]}"
}

if [[ -z ${KZERO_SCRIPT-} ]]; then
  submit 0
  exit
fi

job=${FLUX_ENCLOSING_ID:-${FLUX_JOB_ID:-$$}}
job=${job//[!A-Za-z0-9]/}  # Flux's numbers begin with a florin sign, which not every file system allows in names
restarts=${KZERO_RESTART:-0}
allocation=$(flux resource list -n -o '{nodelist}' -s all)
mapfile -t nodes < <(flux hostlist -e - <<<"$allocation" | tr ' ' '\n')
ranks=$((${#nodes[@]} * ranks_per_node))
threads=${threads:-1}
first_ranks=${KZERO_FIRST_RANKS:-$ranks}
export KZERO_FIRST_RANKS=$first_ranks

# The job's end; without a limit Flux reports 2^32 - 1 seconds or more.
left=$(flux job timeleft 2>/dev/null) || left=
left=${left%%.*}
if [[ $left =~ ^[0-9]+$ ]] && ((left > 0 && left < 4294967295)); then
  export KZERO_JOB_END_TIME=$(($(date +%s) + left))
fi

# When the first rank of a launch has ended, Flux ends the others 30 s later (exit-timeout).
launch() {
  local count=$1 where=()
  shift
  if [[ $KZERO_LAUNCH != 0 ]]; then
    where=(--requires="host:$(joined "${chosen[@]}")")
  fi
  "${bounded[@]}" "${launcher[@]}" --nodes="${#chosen[@]}" --ntasks="$count" "${where[@]}" "$@"
}

believed_up() { flux resource list -n -o '{nodelist}' -s up | flux hostlist -e - | tr ' ' '\n'; }

submit_again() {
  local next
  if next=$(submit $((restarts + 1)) --parent); then
    say "$1: continues as job $next"
  else
    say "$1, but flux batch does not work from here; submit the same again: bash $KZERO_SCRIPT ${arguments[*]}"
  fi
}
