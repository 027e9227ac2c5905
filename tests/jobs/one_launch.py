"""The same training in one launch, which nothing disturbs."""

import re
import subprocess

from launch import KZERO, LAUNCHER, PATIENCE, steps_of


def expect_its_bits(test, ranks, steps):
    """The training of test.folder has the steps, and at the last one the weights, of deck.toml in one launch."""
    command = [*LAUNCHER, ranks, KZERO, "train", "deck.toml", "run.metrics=whole.jsonl", "checkpoint.folder=whole"]
    done = subprocess.run(command, cwd=test.folder, timeout=PATIENCE, capture_output=True, text=True)
    test.assertEqual(done.returncode, 0, done.stderr)
    test.assertEqual(set(steps_of(test.folder / "metrics.jsonl")), set(steps_of(test.folder / "whole.jsonl")))
    test.assertEqual(hash_of(test.folder / f"saved/step_{steps:08}"), hash_of(test.folder / f"whole/step_{steps:08}"))


def hash_of(checkpoint):
    """The hash of the weights of a checkpoint, by kzero inspect."""
    shown = subprocess.run([KZERO, "inspect", checkpoint], capture_output=True, text=True).stdout
    return re.search(r"hash (\w+)", shown).group(1)
