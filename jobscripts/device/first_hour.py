"""Runs parts of the first hour on an unpacked bundle; first_hour.sh starts it.

first_hour.py BUNDLE OUTPUT [--seconds N] [PART...]
"""

import argparse
import json
import tarfile
import traceback
from pathlib import Path

import correctness
import counters
import launches
import sanitizer
import speed
from found import Found, as_json, summary
from programs import Clock, Machine, OutOfTime, complain

# (name, seconds at most, function), in the order that finds most per minute. packaging always runs.
PARTS = (
    ("packaging", 60, correctness.packaging),
    ("units", 240, correctness.units),
    ("losses", 150, correctness.losses),
    ("attention", 90, correctness.attention),
    ("bits", 120, correctness.bits),
    ("offload", 180, launches.offload),
    ("sanitizer", 240, sanitizer.sanitizer),
    ("speed", 420, speed.speed),
    ("ranks", 300, launches.ranks),
    ("counters", 120, counters.counters),
)
NO_DEVICE = "no device"
CALL = 540  # seconds of one call by default; machines are often lent for calls of ten minutes


def chosen_parts(names):
    """The parts with these names, in the order of the table; all if there are none."""
    known = [name for name, _, _ in PARTS]
    if unknown := [name for name in names if name not in known]:
        complain(f"first_hour: no part {unknown[0]}; the parts are {' '.join(known)}")
    return [part for part in PARTS if part[0] == "packaging" or not names or part[0] in names]


def write_whole(path, data):
    """Replaces a file at once: a call that is killed leaves the results so far."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.replace(path)


def save(head, found, logs, output):
    lines = summary(head, [part for part in found if part.reason != NO_DEVICE])
    write_whole(output / "results.json", (json.dumps(as_json(head, found), indent=1) + "\n").encode())
    write_whole(output / "summary.txt", ("\n".join(lines) + "\n").encode())
    partial = output / "logs.tar.gz.partial"
    with tarfile.open(partial, "w:gz") as tar:
        tar.add(logs, "logs")
    partial.replace(output / "logs.tar.gz")
    return lines


def run_part(machine, clock, name, seconds, function):
    """One part within its limit and the call's. An exception is a fault of these scripts, and ends the part only."""
    found, limit = Found(name), Clock(min(seconds, clock.left()))
    reason, before = "", limit.left()
    try:
        function(machine, limit, found)
    except OutOfTime:
        reason = "out of time"
    except Exception as problem:
        found.check("script", False, f"{type(problem).__name__}: {problem}")
        (machine.logs / "script.log").write_text(traceback.format_exc())
    found.close(reason)
    found.seconds = before - limit.left()
    return found


def run_parts(machine, clock, parts, head, logs, output):
    """Runs them and saves after each. Returns the lines of the summary."""
    found = []
    for name, seconds, function in parts:
        machine.logs = logs / name
        machine.logs.mkdir(parents=True, exist_ok=True)
        if machine.no_device:
            found.append(Found(name, reason=NO_DEVICE))
        elif clock.left() < 15 and name != "packaging":
            found.append(Found(name, reason="no time left in this call"))
        else:
            print(f"{name} ...", flush=True)
            found.append(run_part(machine, clock, name, seconds, function))
            print(found[-1].line(), flush=True)
        without = [f"{machine.no_device}; no other part was run"] if machine.no_device else []
        lines = save(head + without, found, logs, output)
    return lines


def main():
    parser = argparse.ArgumentParser(prog="first_hour.sh", usage="%(prog)s BUNDLE OUTPUT [--seconds N] [PART...]")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seconds", type=float, default=CALL)
    arguments = parser.parse_intermixed_args()
    parts = chosen_parts(arguments.parts)
    output, bundle = arguments.output.resolve(), arguments.bundle.resolve()
    if not (bundle / "bin/kzero").exists():
        complain("first_hour: the archive has no bin/kzero; bundle.sh makes one")
    output.mkdir(parents=True, exist_ok=True)
    work, logs = bundle / "work", bundle / "logs"
    for folder in (work, logs):
        folder.mkdir(exist_ok=True)
    facts = bundle / "bundle.txt"
    head = [f"first hour of kzero on a device; {facts.read_text().strip() if facts.exists() else 'a bundle without facts'}"]
    root = Path(__file__).resolve().parents[2]
    machine = Machine(bundle, root, work, logs)
    lines = run_parts(machine, Clock(arguments.seconds), parts, head, logs, output)
    print("\n".join(["", *lines]))


if __name__ == "__main__":
    main()
