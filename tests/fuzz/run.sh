#!/usr/bin/env bash
# Feeds damaged and random bytes to every reader of files and decks, each target for some seconds on a core; 0 if none failed.
# Needs Clang, which `bash cmake/debian.sh ci` installs. Inputs on which a target fails stay in build/asan/fuzz/failures.
#
#   bash tests/fuzz/run.sh [SECONDS_PER_TARGET [TARGET...]]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-20}
targets=("${@:2}")
((${#targets[@]})) || targets=(deck quantity plan_options tokenizer safetensors token_file manifest manifest_values)

cmake --preset asan -DKZERO_WERROR=ON
cmake --build --preset asan --target fuzzers
programs=$PWD/build/asan
folder=$programs/fuzz
export LSAN_OPTIONS=suppressions=$PWD/tests/support/leaks.txt:print_suppressions=0 UBSAN_OPTIONS=print_stacktrace=1
"$programs/fuzz_seeds" tests/data/decks "$folder/seeds"
mkdir -p "$folder/failures" "$folder/found"

# The memory that one read may take is far above any of these small files.
options=(-max_total_time="$seconds" -timeout=60 -malloc_limit_mb=128 -rss_limit_mb=2048 -print_final_stats=1)
fuzz() {  # TARGET
  local found=$folder/found/$1
  mkdir -p "$found"
  rm -f "$folder/$1.failed"
  "$programs/fuzz_$1" "${options[@]}" -artifact_prefix="$folder/failures/$1-" "$found" "$folder/seeds/$1" >"$folder/$1.log" 2>&1 ||
    touch "$folder/$1.failed"
}

for target in "${targets[@]}"; do
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n || true; done
  fuzz "$target" &
done
wait

failed=0
for target in "${targets[@]}"; do
  awk -v target="$target" '
    /^stat::number_of_executed_units/ { runs = $2 }
    /^stat::average_exec_per_sec/ { speed = $2 }
    / cov: / { for (i = 1; i < NF; ++i) if ($i == "cov:") covered = $(i + 1) }
    END { printf "%-16s %10d runs, %7d a second, %5d edges covered\n", target, runs, speed, covered }' "$folder/$target.log"
  [[ -e $folder/$target.failed ]] || continue
  echo "FAILED: $target"
  tail -40 "$folder/$target.log"
  failed=1
done
exit $failed
