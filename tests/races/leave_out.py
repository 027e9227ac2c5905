"""Leaves out every barrier of the kernels' teams, and every single, one at a time: a test has to notice each.

    python3 leave_out.py SRC TEST_PROGRAM... [--only TEXT]

SRC/kernels is read for the places, but for what hosts alone run, whose teams have one thread; the programs are test_kernels,
test_tensor_cores and test_optim of a build with ThreadSanitizer. Prints what noticed each, and exits with 1 if nothing noticed
one: then no test runs into it, or nothing needs it.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

PLACE = re.compile(r"\bteam\.(team_barrier)\(\)|\bKokkos::(Per(?:Team|Thread))\(team\)")
SECONDS = 900
# The tests that run what a file has, by GoogleTest's filters, one after the other; all of them where there is none.
TESTS = {
    "all_heads_norm": "AllHeadsNorm/0*",
    "attention/device": "Attention/*.TilesMatchThePlainLoop",
    "attention/warp": "TensorCoreAttention/0.WarpsMatchThePlainLoop",
    "attention/cached": "CachedAttention*",
    "expert_rows": "ExpertRowSums*",
    "few_rows": "FewRows*",
    "attention/head_tile": "Attention/*.TilesMatchThePlainLoop",
    "norm": "Layernorm*:Rmsnorm*",
    "reduction": "Reduction*:SumInOrder*",
    "rotary": "Rotary*",
    "routing": "Routing*",
    "row_sums": "Reduction*",
    "device/softmax": "CrossEntropyInPlace*:CrossEntropyForward* CrossEntropy/0*",
    "softmax": "CrossEntropyInPlace*:CrossEntropyForward* CrossEntropy/0*",
    "update_sums": "Lamb*-*.IsOneLaunch*",
    "xielu": "Xielu/0*",
}


def places(source):
    for path in sorted((source / "kernels").rglob("*.?pp")):
        if "host" in (path.stem, path.parent.name):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in PLACE.finditer(line.split("//")[0]):
                yield path.relative_to(source / "kernels").as_posix(), number, match.group(1) or match.group(2)


def tests_of(name):
    found = [tests for start, tests in TESTS.items() if name.startswith(start)]
    return (found[0] if found else "*").split()


def noticed(program, tests, name, number):
    """The failure of a run of tests without the barrier at this place; nothing if the run passes."""
    environment = dict(os.environ, KZERO_OMIT=f"{name}:{number}", TSAN_OPTIONS="halt_on_error=1:symbolize=0")
    command = [program, f"--gtest_filter={tests}", "--gtest_fail_fast"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    if "ThreadSanitizer: data race" in run.stderr:
        return "a race"
    if "a team's threads" in run.stderr:
        return "threads that do not meet"
    if "[  FAILED  ]" in run.stdout:
        return "a wrong result"
    if run.returncode != 0:
        sys.exit(f"without {name}:{number} {program} ended with {run.returncode}: {run.stderr[-500:]}")
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--only", default="", help="places whose FILE:LINE contains this")
    arguments = parser.parse_args()
    missed, found = [], [place for place in places(arguments.source) if arguments.only in f"{place[0]}:{place[1]}"]
    for name, number, kind in found:
        runs = ((program, tests) for program in arguments.programs for tests in tests_of(name))
        why = next(filter(None, (noticed(*run, name, number) for run in runs)), "")
        print(f"{name}:{number} {kind}: {why or 'NOT NOTICED'}", flush=True)
        if not why:
            missed.append((name, number))
    if not found:
        sys.exit("no place to leave out")
    print(f"{len(found) - len(missed)} of {len(found)} noticed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
