# The part of job.sh for machines without a batch system: mpiexec on the hosts in a file. mpiexec.sh sources it through job.sh.
#
# KZERO_MPIEXEC   the launcher up to the number of ranks (mpiexec -machinefile NODEFILE -n). NODEFILE is replaced by a file with
#                 one line per rank.

job=$(hostname -s)-$$
restarts=0
threads=${OMP_NUM_THREADS:-1}
allocation=$host_file

# Sets $listed to one host per rank.
read_hosts() {
  local line number=0 rank lines=()
  local form="^[[:space:]]*($host_name)([[:space:]:]+([1-9][0-9]{0,3}))?[[:space:]]*$"
  listed=()
  mapfile -t lines <"$host_file" || exit 4
  for line in "${lines[@]}"; do
    ((++number))
    line=${line%%#*}
    [[ $line =~ [^[:space:]] ]] || continue
    if [[ ! $line =~ $form ]]; then
      printf '%s: line %d is %q; expected NAME or NAME:RANKS, with letters, digits and "._-" in a name and at most 9999 ranks\n' \
        "$host_file" "$number" "$line" >&2
      exit 2
    fi
    for ((rank = 0; rank < ${BASH_REMATCH[3]:-1}; ++rank)); do
      listed+=("${BASH_REMATCH[1]}")
    done
  done
  if ((${#listed[@]} == 0)); then
    echo "$host_file: lists no hosts; expected lines of the form NAME or NAME:RANKS" >&2
    exit 2
  fi
}
read_hosts

source "$here/batch_hosts.sh"
use_hosts "${listed[@]}"
read -ra launcher <<<"${KZERO_MPIEXEC:-mpiexec -machinefile NODEFILE -n}"
trap 'interrupted=1' INT  # Ctrl-C also reaches mpiexec. The script waits until mpiexec has ended.

submit_again() { say "$1; start it again for the rest: bash $script $host_file ${arguments[*]}"; }
