"""Compares a disturbed training with the same training in one undisturbed launch."""

import re
import subprocess

from launch import KZERO, LAUNCHER, PATIENCE, steps_of


def expect_its_bits(test, ranks, steps):
    """Trains deck.toml in one launch. The training in test.folder must have the same steps and the same last weights."""
    command = [*LAUNCHER, ranks, KZERO, "train", "deck.toml", "run.metrics=whole.jsonl", "checkpoint.folder=whole"]
    done = subprocess.run(command, cwd=test.folder, timeout=PATIENCE, capture_output=True, text=True)
    test.assertEqual(done.returncode, 0, done.stderr)
    test.assertEqual(set(steps_of(test.folder / "metrics.jsonl")), set(steps_of(test.folder / "whole.jsonl")))
    test.assertEqual(hash_of(test.folder / f"saved/step_{steps:08}"), hash_of(test.folder / f"whole/step_{steps:08}"))


def hash_of(checkpoint):
    """The hash of a checkpoint's weights, as kzero inspect prints it."""
    shown = subprocess.run([KZERO, "inspect", checkpoint], capture_output=True, text=True).stdout
    return re.search(r"hash (\w+)", shown).group(1)
