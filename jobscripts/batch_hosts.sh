# Launches by mpiexec on the hosts in a file with one line per rank. batch_pbs.sh and batch_mpiexec.sh source this file.
#
# The word NODEFILE in $launcher is replaced by the name of that file. PBS_NODEFILE contains the name, too: in PBS jobs the
# mpiexec of MPICH and of Open MPI reads it. The number of ranks follows $launcher.

# use_hosts HOST...: sets the variables that relaunch.sh reads. The arguments are one host per rank.
use_hosts() {
  local host here_ranks
  local -A ranks_of=()
  hosts=("$@") nodes=() ranks=$# ranks_per_node=0
  for host in "$@"; do
    # No name is in arithmetic, which would run a command in a subscript.
    [[ -n ${ranks_of[$host]-} ]] || nodes+=("$host")
    here_ranks=$((${ranks_of[$host]:-0} + 1))
    ranks_of[$host]=$here_ranks
    ranks_per_node=$((here_ranks > ranks_per_node ? here_ranks : ranks_per_node))
  done
  first_ranks=${KZERO_FIRST_RANKS:-$ranks}
  export KZERO_FIRST_RANKS=$first_ranks
}

launch() {
  local count=$1 file status
  shift
  file=$(mktemp) || return
  if ! printf '%s\n' "${hosts[@]}" | grep -xF -e "$(printf '%s\n' "${chosen[@]}")" | head -n "$count" >"$file"; then
    echo "$file: cannot be written; without the list of hosts mpiexec would start all ranks here" >&2
    rm -f "$file"
    return 4
  fi
  PBS_NODEFILE=$file "${bounded[@]}" "${launcher[@]/NODEFILE/$file}" "$count" "$@"
  status=$?
  rm -f "$file"
  return "$status"
}

believed_up() { printf '%s\n' "${nodes[@]}"; }
