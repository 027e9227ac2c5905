"""Algorithms of cuBLASLt: the table that kzero measures for a deck, and steps with and without it."""

import statistics

from speed import CASES, WARM_UP, overrides_for
from training import expect_bits, largest_difference, rehearsed, settings, train

NAMES = ("124M 32x1024", "1.5B 8x1024", "Llama-1B 4x2048")
# Written down before they were measured, for an H200 (2026-11-29): what the table saves of a step.
PREDICTED = {"124M 32x1024": "-1 to -2 ms", "1.5B 8x1024": "-4 to -7 ms", "Llama-1B 4x2048": "-3 to -5 ms"}
REFUSAL = "lets kzero choose algorithms"  # of a build that has no cuBLASLt


def median_ms(training):
    return 1e3 * statistics.median(step["seconds"] for step in training.steps[WARM_UP:])


def measured(machine, clock, found, name, deck, overrides):
    """The file of the table, which comes home with the logs; None if there is none."""
    label = name.replace(" ", "_")
    table = machine.logs / f"{label}.toml"
    table.unlink(missing_ok=True)
    keys = rehearsed(deck, overrides) if machine.rehearses else overrides
    command = machine.command("kzero", "check", machine.bundle / "decks" / deck, *settings(keys), "--algorithms", table)
    done = machine.run(f"{label}.table", command, min(60, clock.left()))
    if machine.rehearses:
        found.check(f"{name}, refused on a host", done.code == 2 and REFUSAL in done.text(), done.how())
        return None
    if not found.check(f"{name}, table", done.code == 0 and table.exists(), done.how()):
        return None
    found.lines.append("  " + done.text().strip().splitlines()[-1].rpartition("/")[2])
    return table


def compare(machine, clock, found, name, deck, overrides):
    clock.require(8)
    table = measured(machine, clock, found, name, deck, overrides)
    if table is None:
        return
    runs = {}
    for way, keys in (("without", {}), ("with", {"run.algorithms": table}), ("again", {"run.algorithms": table})):
        if way == "again" and name != NAMES[0]:
            continue
        clock.require(5)
        runs[way] = train(machine, f"{name.replace(' ', '_')}_{way}", deck, overrides | keys, min(60, clock.left()))
        if not found.check(f"{name}, {way}", runs[way].is_complete(), runs[way].done.how()):
            return
    if "again" in runs:
        expect_bits(found, f"{name}, twice", runs["again"], runs["with"])
    before, after = median_ms(runs["without"]), median_ms(runs["with"])
    far = largest_difference(runs["with"].losses(), runs["without"].losses())
    found.lines.append(
        f"  {name:<22}{before:8.1f} ms, with the table {after:8.1f}; predicted {PREDICTED[name]}; losses differ by {far:.1e}"
    )
    found.values[name] = {"ms": before, "ms_with_table": after, "losses_differ": far, "table": table.read_text()}


def algorithms(machine, clock, found):
    """What a table of algorithms saves of a step; its bits are the same twice."""
    found.lines.append("cuBLASLt's algorithms, bf16:")
    for name, deck, case in CASES:
        if name in NAMES:
            compare(machine, clock, found, name, deck, overrides_for(machine, case))
