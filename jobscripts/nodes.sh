# The part of job.sh that asks the nodes of the allocation whether they answer. job.sh sources this file.
#
# KZERO_PROBE_SECONDS    how long a node may take to answer (20)

answering=()          # array: the nodes that answered
declare -A free_kib   # the free memory of each of them, in KiB

# A probe runs this on a node. It ends the ranks that earlier launches of this script left there, and then prints the free
# memory. The ranks get a few seconds to end by themselves. They have KZERO_STARTED_BY in their environment.
look='
left() { grep -lszx "KZERO_STARTED_BY=$1" /proc/[0-9]*/environ | cut -d/ -f3; }
for second in 1 2 3 4 5 6 7 8; do
  found=$(left "$1")
  [ -z "$found" ] && break
  [ "$second" -lt 6 ] || kill -9 $found
  sleep 1
done
[ -n "$found" ] || sed -n "s/^MemAvailable: *\([0-9]*\) kB/kzero-node \1/p" /proc/meminfo
'

# probe NODE: prints the free memory of the node in KiB. Prints nothing if the node does not answer in time, or if a rank of an
# earlier launch does not end there.
probe() {
  local chosen=("$1") bounded=(timeout -k 5 "${KZERO_PROBE_SECONDS:-20}")
  KZERO_LAUNCH=probe launch 1 sh -c "$look" kzero "$started_by" 2>/dev/null </dev/null | sed -n 's/.*kzero-node \([0-9]\{1,18\}\).*/\1/p' | head -n 1
}

# Sets $answering and $free_kib. Probes run on 64 nodes at a time.
find_answering() {
  local folder node known pids=()
  answering=() free_kib=()
  folder=$(mktemp -d) || return
  mapfile -t known < <(believed_up)
  for node in "${known[@]}"; do
    probe "$node" >"$folder/$node" &
    pids+=($!)
    if ((${#pids[@]} == 64)); then
      wait "${pids[@]}"
      pids=()
    fi
  done
  ((${#pids[@]} == 0)) || wait "${pids[@]}"
  for node in "${nodes[@]}"; do
    if [[ -s $folder/$node ]]; then
      answering+=("$node")
      free_kib[$node]=$(<"$folder/$node")
    fi
  done
  rm -rf "$folder"
}

# silent_among NODE...: prints those of the nodes that did not answer, one per line.
silent_among() {
  local node
  for node in "$@"; do
    [[ -n ${free_kib[$node]-} ]] || echo "$node"
  done
}

# has_memory NODE...: whether each of the nodes has $rank_bytes for each of its ranks. If one has not, prints which. For
# builds for devices the plan counts device memory, which a probe does not see. There the program itself decides, with
# exit code 3.
has_memory() {
  local node kib needed
  if "$kzero" --version 2>/dev/null | grep -Eq '^execution (Cuda|HIP|SYCL)'; then
    return 0
  fi
  needed=$((rank_bytes / 1024 * (ranks < ranks_per_node ? ranks : ranks_per_node)))
  for node in "$@"; do
    kib=${free_kib[$node]}
    if [[ -n ${node_kib-} ]] && ((kib > node_kib)); then
      kib=$node_kib
    fi
    if ((needed > kib)); then
      say "not launched again: $ranks ranks on $# of ${#nodes[@]} nodes need $(size "$needed") a node, and $node has $(size "$kib")"
      return 1
    fi
  done
}

# size KIB: prints the size with its unit.
size() { numfmt --from-unit=1024 --to=iec-i --suffix=B --format=%.1f "$1"; }
