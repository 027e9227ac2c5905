# The part of job.sh for machines without a batch system: mpiexec on the hosts in a file. mpiexec.sh sources it through job.sh.
#
# KZERO_MPIEXEC   the launcher up to the number of ranks (mpiexec -machinefile NODEFILE -n). NODEFILE is replaced by a file with
#                 one line per rank.

job=$(hostname -s)-$$
restarts=0
threads=${OMP_NUM_THREADS:-1}
allocation=$host_file
mapfile -t listed < <(sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "$host_file" | while IFS=': ' read -r host count _; do
  for ((i = 0; i < ${count:-1}; ++i)); do
    echo "$host"
  done
done)
if ((${#listed[@]} == 0)); then
  echo "$host_file: lists no hosts; expected lines of the form NAME or NAME:RANKS" >&2
  exit 2
fi

source "$here/batch_hosts.sh"
use_hosts "${listed[@]}"
read -ra launcher <<<"${KZERO_MPIEXEC:-mpiexec -machinefile NODEFILE -n}"
trap 'interrupted=1' INT  # Ctrl-C also reaches mpiexec. The script waits until mpiexec has ended.

submit_again() { say "$1; start it again for the rest: bash $script $host_file ${arguments[*]}"; }
