# The part of job.sh that asks the program what a deck needs. job.sh sources this file.
#
# $words are the arguments of kzero train: the deck, and settings that replace its keys.

# plan RANKS: sets $tensor (the ranks of a tensor group), $micro_batch, and $rank_bytes (the memory of a rank) for a run
# of $words on that many ranks. Fails if such a run is not possible, and sets $problem. The rates are given, so that
# nothing is measured.
plan() {
  local told
  if ! told=$("$kzero" plan "${words[@]}" --ranks "$1" --json --tflops 1 --bandwidth 1GB --memory-bandwidth 1GB 2>&1 </dev/null); then
    problem=$(tail -n 1 <<<"$told")
    return 1
  fi
  tensor=$(number tensor <<<"$told")
  micro_batch=$(number micro_batch <<<"$told")
  rank_bytes=$(number total_bytes <<<"$told")
}

# number NAME: prints the number of that name in the JSON on standard input.
number() { sed -n "s/^ *\"$1\": \([0-9]*\).*/\1/p" | head -n 1; }

# set_micro_batch SEQUENCES: sets train.micro_batch in $words. Its default depends on the number of ranks, and results
# depend on it bit for bit. A launch on other nodes therefore needs the value of the job's first launch.
set_micro_batch() {
  local word kept=()
  for word in "${words[@]}"; do
    [[ $word == train.micro_batch=* ]] || kept+=("$word")
  done
  words=("${kept[@]}" "train.micro_batch=$1")
}

# Prepares a restart on another number of ranks than the job's first launch had: sets the micro-batch, and lowers $ranks to a
# number that the deck allows.
fit_restart() {
  if ((ranks == first_ranks)) || ! plan "$first_ranks"; then
    return 0
  fi
  set_micro_batch "$micro_batch"
  if ((ranks > tensor)); then
    ranks=$((ranks - ranks % tensor))
  fi
  if ((ranks > first_ranks)) && ! plan "$ranks"; then
    say "$first_ranks of $ranks ranks, as in the job's first launch; a smaller train.micro_batch in the deck allows more"
    ranks=$first_ranks
  fi
}

# Prints a line that changes when the run writes a checkpoint. Prints nothing if it cannot tell where checkpoints are.
newest_checkpoint() {
  local folder
  folder=$(checkpoint_folder)
  [[ -z $folder ]] || stat -c '%n %y' -- "$folder"/step_*[0-9]/manifest.h5 2>/dev/null | sort -V | tail -n 1
}

# Prints checkpoint.folder, from $words or from a line of its own in the deck.
checkpoint_folder() {
  local word folder=
  for word in "${words[@]}"; do
    [[ $word != checkpoint.folder=* ]] || folder=${word#*=}
  done
  [[ -n $folder || ! -f ${words[0]} ]] || folder=$(folder_in_deck "${words[0]}")
  folder=${folder#[\"\']}
  echo "${folder%[\"\']}"
}

# folder_in_deck DECK: prints folder of the table [checkpoint], or checkpoint.folder from before the first table.
folder_in_deck() {
  awk '
    /^[ \t]*\[/ { table = $0; gsub(/#.*|[][ \t]/, "", table) }
    (table == "checkpoint" && /^[ \t]*folder[ \t]*=/) || (table == "" && /^[ \t]*checkpoint\.folder[ \t]*=/) {
      sub(/^[^=]*=[ \t]*/, "")
      split(substr($0, 2), parts, substr($0, 1, 1))
      print parts[1]
      exit
    }' <"$1"  # awk would take a name with "=" for a setting and read standard input
}
