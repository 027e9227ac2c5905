"""Runs parts of the first hour on an unpacked bundle; first_hour.sh starts it.

first_hour.py BUNDLE OUTPUT [--seconds N] [--rehearse] [PART...]
"""

import argparse
import dataclasses
import datetime
import json
import sys
import tarfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import algorithms
import correctness
import counters
import features
import launches
import nccl
import pytorch
import sanitizer
import speed
from found import Found, as_json, summary
from programs import Clock, Machine, OutOfTime, complain

PARTS = {
    "packaging": correctness.packaging,
    "units": correctness.units,
    "losses": correctness.losses,
    "attention": correctness.attention,
    "bits": correctness.bits,
    "offload": launches.offload,
    "features": features.features,
    "nccl": nccl.nccl,
    "speed": speed.speed,
    "algorithms": algorithms.algorithms,
    "sanitizer": sanitizer.sanitizer,
    "counters": counters.counters,
    "ranks": launches.ranks,
    "pytorch": pytorch.pytorch,
}
# (seconds at most, chains), in the order that finds most per minute. The chains of a stage run side by side, the parts of a chain
# one after the other. A part that measures time, or NCCL between ranks that wait for each other, is alone.
STAGES = (
    (60, (("packaging",),)),
    (130, (("units",), ("offload",), ("features",), ("losses", "attention", "bits"))),
    (180, (("nccl",),)),
    (110, (("speed",),)),
    (60, (("algorithms",),)),
    (75, (("sanitizer",),)),
    (45, (("counters",),)),
    (300, (("ranks",),)),
    (300, (("pytorch",),)),
)
NO_DEVICE = "no device"
CALL = 540  # seconds of one call by default; machines are often lent for calls of ten minutes
SLOWER = 5  # times as long as a device, on a host that is busy with other builds
MIN_SECONDS = 15  # seconds for which no stage is begun
LONGEST_LOG = 4 << 20  # bytes; the end of a longer log is kept


def stages_of(names):
    """STAGES; with names, packaging and then a stage for each part, in their order. Stages of named parts have no limit of their
    own: each gets an equal share of the time that is left."""
    if unknown := [name for name in names if name not in PARTS]:
        complain(f"first_hour: no part {unknown[0]}; the parts are {' '.join(PARTS)}")
    if not names:
        return STAGES
    chosen = [name for name in dict.fromkeys(names) if name != "packaging"]
    return (STAGES[0], *((None, ((name,),)) for name in chosen))


def write_whole(path, data):
    """Replaces a file at once: a call that is killed leaves the results so far."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.replace(path)


def shorten(path):
    """Leaves the end of a long log, so that the results stay small enough to bring home."""
    if path.is_file() and path.stat().st_size > LONGEST_LOG:
        with open(path, "rb") as file:
            file.seek(-LONGEST_LOG, 2)
            end = file.read()
        path.write_bytes(b"(only the end of this log was kept)\n" + end)


def save(facts, head, found, logs, output):
    lines = summary(head, [part for part in found if part.reason != NO_DEVICE])
    write_whole(output / "results.json", (json.dumps(as_json(facts, head, found), indent=1) + "\n").encode())
    write_whole(output / "summary.txt", ("\n".join(lines) + "\n").encode())
    for path in logs.rglob("*"):
        shorten(path)
    partial = output / "logs.tar.gz.partial"
    with tarfile.open(partial, "w:gz") as tar:
        tar.add(logs, "logs")
    partial.replace(output / "logs.tar.gz")
    return lines


def run_part(machine, clock, name):
    """One part within the time of its stage. An exception is a fault of these scripts, and ends the part only."""
    found, reason, before = Found(name), "", clock.left()
    try:
        PARTS[name](machine, clock, found)
    except OutOfTime:
        reason = "out of time"
    except Exception as problem:
        found.check("script", False, f"{type(problem).__name__}: {problem}")
        (machine.logs / "script.log").write_text(traceback.format_exc())
    found.close(reason)
    found.seconds = before - clock.left()
    return found


def say(line):
    """One write, so that the lines of chains do not mix."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def run_chain(machine, clock, chain, logs):
    """Parts one after the other, each with a folder of logs. Chains share what earlier parts have trained."""
    found = []
    for name in chain:
        own = dataclasses.replace(machine, logs=logs / name)
        own.logs.mkdir(parents=True, exist_ok=True)
        say(f"{name} ...")
        found.append(run_part(own, clock, name))
        machine.no_device = machine.no_device or own.no_device
        say(found[-1].line())
    return found


def run_stage(machine, clock, chains, logs):
    with ThreadPoolExecutor(len(chains)) as pool:
        parts = pool.map(lambda chain: run_chain(machine, clock, chain, logs), chains)
        return [part for of_chain in parts for part in of_chain]


def run_stages(machine, clock, stages, head, logs, output):
    """Runs them and saves after each. Returns the lines of the summary."""
    found = []
    for number, (seconds, chains) in enumerate(stages):
        share = clock.left() / (len(stages) - number)
        if machine.no_device or (number > 0 and clock.left() < MIN_SECONDS):
            reason = NO_DEVICE if machine.no_device else "no time left in this call"
            found += [Found(name, reason=reason) for chain in chains for name in chain]
        else:
            most = share if seconds is None else seconds * (SLOWER if machine.rehearses else 1)
            limit = min(most, clock.left())
            found += run_stage(machine, Clock(limit), chains, logs)
        without = [f"{machine.no_device}; no other part was run"] if machine.no_device else []
        lines = save(machine.facts, head + without, found, logs, output)
    return lines


def main():
    parser = argparse.ArgumentParser(prog="first_hour.sh", usage="%(prog)s BUNDLE OUTPUT [--seconds N] [--rehearse] [PART...]")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seconds", type=float, default=CALL)
    parser.add_argument("--rehearse", action="store_true")
    arguments = parser.parse_intermixed_args()
    stages = stages_of(arguments.parts)
    output, bundle = arguments.output.resolve(), arguments.bundle.resolve()
    if not (bundle / "bin/kzero").exists():
        complain("first_hour: the archive has no bin/kzero; bundle.sh makes one")
    output.mkdir(parents=True, exist_ok=True)
    work, logs = bundle / "work", bundle / "logs"
    for folder in (work, logs):
        folder.mkdir(exist_ok=True)
    facts = bundle / "bundle.txt"
    made = facts.read_text().strip() if facts.exists() else "a bundle without facts"
    root = Path(__file__).resolve().parents[2]
    machine = Machine(bundle, root, work, logs, rehearses=arguments.rehearse)
    machine.facts |= {"bundle": made, "date": str(datetime.date.today())}
    head = [f"{'rehearsal on a host' if arguments.rehearse else 'first hour of kzero on a device'}; {made}"]
    lines = run_stages(machine, Clock(arguments.seconds), stages, head, logs, output)
    print("\n".join(["", *lines]))


if __name__ == "__main__":
    main()
