#!/usr/bin/env bash
# The whole way of a small model, without a download: pre-trained on this repository's documents and sources, averaged, tuned on
# questions, taught which of two answers is better, and distilled into a model of a third of its size. Prints what each step brought.
# Needs build/release/kzero (input/quickstart.sh builds it), 1 GiB of disk and a quarter of an hour on two cores. Starts afresh, and
# removes nothing but runs/way.
#
#   bash input/whole_way.sh
#
# docs/tutorial.md, "The whole way", explains the steps.
set -euo pipefail
cd "$(dirname "$0")/.."

kzero=build/release/kzero
way=runs/way
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}  # a rank

section() { printf '\n=== %s\n' "$*"; }
ranks() { mpiexec -n 2 "$kzero" "$@"; }
held_out() { ranks evaluate "$1" "$way"/text/text_val_*.bin --sequence 256; }

rm -rf "$way"
python3 input/way/questions.py input/questions.jsonl "$way"

section "Pre-train on the repository's text"
python3 input/prepare.py README.md CONTRIBUTING.md docs src postprocess -o "$way/text" --vocab 4096 --validation 0.05
ranks train input/way/base.toml

section "Average the checkpoints of the last 200 steps"
last=("$way"/base/step_*)
last=("${last[@]: -5}")
"$kzero" convert "${last[-1]}" "$way/base_last"
"$kzero" convert "${last[@]}" "$way/base_model" --average mean
held_out "$way/base_last"
held_out "$way/base_model"

section "Tune on questions"
python3 input/prepare.py "$way/questions.jsonl" -o "$way/questions" --chat --tokenizer "$way/base_model" --sequence 256 --validation 0.15
ranks train input/way/tune.toml
"$kzero" convert "$way/tuned" "$way/tuned_model"

section "Prefer the better of two answers"
python3 input/prepare.py "$way/pairs.jsonl" -o "$way/pairs" --pairs --tokenizer "$way/base_model" --sequence 256
ranks evaluate "$way/tuned_model" "$way/pairs/text_train.docs" --log-probs "$way/pairs/text.logprobs"
ranks train input/way/prefer.toml
"$kzero" convert "$way/preferred" "$way/preferred_model"
"$kzero" compare "$way/tuned_model" "$way/preferred_model" "$way/asked.jsonl" --max-tokens 40

section "Distil into a smaller model"
ranks evaluate "$way/base_model" "$way/text/text_train_*.bin" --sequence 256 --top 64 --out "$way/text/text.top"
ranks train input/way/student.toml
ranks train input/way/student.toml distill.file="$way/text/text.top" distill.weight=0.7 checkpoint.folder="$way/student" \
  run.metrics="$way/student.jsonl"
held_out "$way/alone"
held_out "$way/student"
