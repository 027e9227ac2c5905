#!/usr/bin/env python3
"""Many ends and losses of trainings over nodes, one after another: a long run by hand.

Each trial is a line of JSON in the output file; a summary table follows. After a loss the same command is started on the nodes that are
left, and its result has to have the bits of an undisturbed training.

    KZERO=build/release/kzero python3 tests/cluster/campaign.py OUT.jsonl --ends 50 --kills 20 --powers 20 --cuts20 5 --cuts 5 \\
        --set run.heartbeat=10s
"""

import argparse
import itertools
import json
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

from nodes.cluster import Cluster
from nodes.requirements import why_not
from training import KEEP, Training
from trials import MOMENTS, run_trial, train_reference

SIZES = (2, 3, 4)  # nodes with ranks
ENDS = {"completed": (0, ()), "stopped": (75, ("run.max_steps=1",))}  # exit code, settings
LOSSES = {"kills": "kill", "powers": "power", "cuts20": "cut20", "cuts": "cut"}  # option: fault
HEADING = (
    "trial",
    "trials",
    "fault came too late",
    "hangs",
    "with processes left",
    "wrong codes",
    "lost node not named",
    "lost checkpoints",
    "different bits",
    "s to the end",
    "s to the next step",
)
MISHAPS = ("hung", "left", "wrong_code", "unnamed", "lost", "different_bits")  # of rows, counted by the middle columns
HEAD = "node5"  # of mpiexec where the node of rank 0 is lost


def try_end(cluster, number, arguments):
    nodes, kind = SIZES[number % len(SIZES)], list(ENDS)[number // len(SIZES) % len(ENDS)]
    code, settings = ENDS[kind]
    training = Training(cluster, f"end{number}", "train.steps=2", "checkpoint.every=0", *settings, *arguments.set)
    launch = training.launch(cluster.nodes[:nodes])
    outcome = launch.wait(arguments.limit)
    left = [line for _, line in launch.processes()]
    launch.kill()
    return {
        "fault": f"end, {kind}",
        "hosts": nodes,
        "hung": outcome.code is None,
        "code": outcome.code,
        "wrong_code": outcome.code not in (None, code),
        "seconds": round(outcome.seconds, 1),
        "left": left,
    }


def try_loss(cluster, number, fault, arguments, reference):
    """The number chooses nodes, moment and victim, so that trials of a kind go through all of them."""
    choices = list(itertools.product((False, True), MOMENTS if fault in ("kill", "power") else MOMENTS[:1], reversed(SIZES)))
    first, moment, nodes = choices[number % len(choices)]
    victim = 0 if first else random.Random(number).randrange(1, nodes)
    head = HEAD if first else None
    result = run_trial(
        cluster,
        f"{fault}{number}",
        fault,
        moment,
        victim,
        cluster.nodes[:nodes],
        head,
        arguments.set,
        arguments.limit,
        arguments.grace,
        reference,
    )
    row = result.json()
    completes = fault == "cut20"
    row["hung"] = result.code is None or result.hung or result.again_hung
    row["unnamed"] = fault in ("power", "cut") and not result.named
    row["different_bits"] = not result.same_bits
    row["wrong_code"] = result.code != 0 if completes else result.again_code != 0 or result.code == 0
    return row


def plan(arguments):
    """(kind, number) of the trials, the kinds by turns."""
    kinds = {"end": arguments.ends, **{fault: getattr(arguments, option) for option, fault in LOSSES.items()}}
    turns = itertools.zip_longest(*([(kind, number) for number in range(count)] for kind, count in kinds.items()))
    return [trial for turn in turns for trial in turn if trial]


def summary(rows):
    """The table's lines."""
    yield f"| {' | '.join(HEADING)} |"
    yield "|---" * len(HEADING) + "|"
    for kind in Counter(row["fault"] for row in rows):
        some = [row for row in rows if row["fault"] == kind]
        late = [row for row in some if not row.get("reached", True)]
        sums = [sum(bool(row.get(name)) for row in some) for name in MISHAPS]
        yield (
            "| "
            + " | ".join(
                map(str, (kind, len(some), len(late), *sums, spread(some, "seconds"), spread(some, "seconds_to_step")))
            )
            + " |"
        )


def spread(rows, name):
    values = [row[name] for row in rows if row.get(name) is not None]
    return f"{statistics.median(values):.1f} (most {max(values):.1f})" if values else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="receives the lines; its old ones count in the table")
    parser.add_argument(
        "--ends", type=int, default=0, help="ends of undisturbed launches, completed and stopped with 75, on 2 to 4 nodes"
    )
    parser.add_argument("--kills", type=int, default=0, help="nodes lost whose kernels close their connections")
    parser.add_argument("--powers", type=int, default=0, help="nodes lost in silence")
    parser.add_argument("--cuts20", type=int, default=0, help="links cut for 20 s")
    parser.add_argument("--cuts", type=int, default=0, help="links cut for good")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="setting of every deck; several times")
    parser.add_argument(
        "--limit", type=float, default=180, help="seconds after a fault in which the launch has to end (%(default)s)"
    )
    parser.add_argument(
        "--grace", type=float, default=30, help="seconds after that in which its processes have to end (%(default)s)"
    )
    arguments = parser.parse_args()
    if reason := why_not():
        sys.exit(f"campaign.py: {reason}")
    with Cluster.temporary(max(SIZES) + 1, keep=KEEP) as cluster, arguments.output.open("a") as output:
        reference = train_reference(cluster)
        for kind, number in plan(arguments):
            row = (
                try_end(cluster, number, arguments) if kind == "end" else try_loss(cluster, number, kind, arguments, reference)
            )
            print(json.dumps({**row, "number": number, "time": time.strftime("%F %T")}), file=output, flush=True)
            bad = [f"{name}: {row[name]}" for name in MISHAPS if row.get(name)]
            print(time.strftime("%T"), kind, number, *bad, flush=True)
    print(*summary([json.loads(line) for line in arguments.output.read_text().splitlines()]), sep="\n")


if __name__ == "__main__":
    main()
