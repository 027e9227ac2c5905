#!/usr/bin/env python3
"""Step times and bytes of decks on links of set rates: a measurement by hand.

A case is a grid, as NODESxRANKS, and settings. Each is a line of JSON in the output file; a table follows. On a machine with fewer cores
than ranks, times say something only where the link is the bottleneck: see the column of the step's time over that of its bytes.

    KZERO=build/release/kzero python3 tests/cluster/slow_links.py OUT.jsonl --rate 200mbit --rate none \\
        --case "4x1 zero.stage=2" --case "2x2 zero.stage=3 zero.overlap=on"
"""

import argparse
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from statistics import mean, median

from nodes.cluster import Cluster
from nodes.requirements import why_not
from training import KEEP, ROOT, Training
from wire import table_bytes

CASES = ("4x1 zero.stage=2", "4x1 zero.stage=3", "2x2 zero.stage=2", "2x2 zero.stage=3")
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
MODEL = (f'data.files=["{ROOT}/docs/*.md"]', "train.validate_every=0", "data.validation_fraction=0")


def bits_per_second(rate):
    """Of a rate such as 200mbit; none: no limit."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]bit)", rate)
    if rate == "none":
        return None
    if not found:
        sys.exit(f"slow_links.py: rate {rate}: expected none or a number with kbit, mbit or gbit, such as 200mbit")
    return float(found[1]) * UNITS[found[2]]


def parse_case(text):
    """(nodes, ranks of each, settings)"""
    grid, *settings = text.split()
    found = re.fullmatch(r"(\d+)x(\d+)", grid)
    if not found or any("=" not in setting for setting in settings):
        sys.exit(f"slow_links.py: case {text!r}: expected NODESxRANKS and settings, such as '4x1 zero.stage=2'")
    return int(found[1]), int(found[2]), settings


def measure(cluster, arguments, case, rate):
    """Trains warm-up and measured steps; bytes are counted between the lines of output of the two."""
    nodes, ranks, settings = parse_case(case)
    hosts = cluster.nodes[:nodes]
    for host in hosts:
        host.set_link(rate=None if rate == "none" else rate)
    last = arguments.warm_up + arguments.steps
    batch = nodes * ranks * arguments.micro_batches
    training = Training(
        cluster,
        "slow",
        f"train.steps={last}",
        f"train.global_batch={batch}",
        "train.micro_batch=1",
        "checkpoint.folder=",
        *arguments.set,
        *settings,
        deck=arguments.deck.resolve(),
        model=MODEL,
    )
    launch = training.launch(hosts, ranks=ranks)
    counted = []
    for step in (arguments.warm_up, last):
        reached = launch.wait_for(rf"^step +{step}/", arguments.limit)
        counted.append(cluster.traffic())
        if not reached:
            launch.kill()
            sys.exit(f"slow_links.py: {case}: no step {step}:\n{launch.output()[-2000:]}")
    outcome = launch.wait(arguments.limit)
    if training.exit_code(outcome) != 0:
        sys.exit(f"slow_links.py: {case}:\n{outcome.output[-2000:]}")
    steps = training.records("step")[arguments.warm_up :]
    sent = mean(counted[1][host.name].sent_bytes - counted[0][host.name].sent_bytes for host in hosts) / arguments.steps
    row = {
        "case": case,
        "micro_batches": arguments.micro_batches,
        "rate": rate,
        "deck": arguments.deck.name,
        "step_seconds": median(step["seconds"] for step in steps),
        "all_seconds": [step["seconds"] for step in steps],
        "tokens_per_second": median(step["tokens_per_second"] for step in steps),
        "sent_bytes": sent,
        "table_bytes": table_bytes(training) * ranks,
        "load": os.getloadavg()[0],
        "time": time.strftime("%F %T"),
    }
    shutil.rmtree(training.folder)
    return row


HEADING = (
    "case",
    "micro-batches",
    "link",
    "step, s",
    "tokens/s",
    "MB sent by a node",
    "by the table, MB",
    "its bytes on the wire, s",
    "step / wire",
    "load",
)


def line(row):
    """A row of the table."""
    bits = bits_per_second(row["rate"])
    wire = 8 * row["sent_bytes"] / bits if bits else None
    cells = (
        row["case"],
        row["micro_batches"],
        row["rate"],
        f"{row['step_seconds']:.3f}",
        f"{row['tokens_per_second']:.0f}",
        f"{row['sent_bytes'] / 1e6:.2f}",
        f"{row['table_bytes'] / 1e6:.2f}",
        f"{wire:.3f}" if wire else "-",
        f"{row['step_seconds'] / wire:.2f}" if wire else "-",
        f"{row['load']:.0f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="receives the lines; its old ones are in the table, too")
    parser.add_argument("--rate", action="append", help="of every link, such as 200mbit, or none; several times (200mbit)")
    parser.add_argument("--case", action="append", help=f"several times ({', '.join(CASES)})")
    parser.add_argument("--deck", type=Path, default=ROOT / "input/tiny.toml", help="%(default)s")
    parser.add_argument(
        "--set", action="append", default=["model.sequence=64"], metavar="KEY=VALUE", help="of every case (%(default)s)"
    )
    parser.add_argument("--micro-batches", type=int, default=1, help="of each rank in a step (%(default)s)")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before those that count (%(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="that count (%(default)s)")
    parser.add_argument("--limit", type=float, default=300, help="seconds that a case may take (%(default)s)")
    arguments = parser.parse_args()
    cases, rates = arguments.case or CASES, arguments.rate or ["200mbit"]
    most = max(parse_case(case)[0] for case in cases)
    for rate in rates:
        bits_per_second(rate)
    if reason := why_not():
        sys.exit(f"slow_links.py: {reason}")
    with (
        Cluster.temporary(most, keep=(*KEEP, arguments.deck.resolve().parent)) as cluster,
        arguments.output.open("a") as output,
    ):
        for rate in rates:
            for case in cases:
                row = measure(cluster, arguments, case, rate)
                print(json.dumps(row), file=output, flush=True)
                print(line(row), flush=True)
    print(f"\n| {' | '.join(HEADING)} |\n|{'---|' * len(HEADING)}")
    print(*(line(json.loads(text)) for text in arguments.output.read_text().splitlines()), sep="\n")


if __name__ == "__main__":
    main()
