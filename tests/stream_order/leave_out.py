#!/usr/bin/env python3
"""Leaves out one event or fence of kzero's after the other and shows whether a training test reports it.

usage: leave_out.py BUILD [RANKS [TESTS]]

TESTS: GoogleTest's filter. An event's call is left out wherever its line was compiled to; a run ends with the first report.
Prints a table in Markdown; takes some minutes."""

import collections
import os
import re
import subprocess
import sys


def run(program, ranks, **environment):
    command = ["mpiexec", "-n", ranks, program, f"--gtest_filter={tests}"]
    settings = {
        "OMP_NUM_THREADS": "1",
        "OMP_PROC_BIND": "false",
        "LD_PRELOAD": preloaded,
        "UCX_MEM_EVENTS": "n",
        "UCX_MEM_MMAP_HOOK_MODE": "none",
        "UCX_MEM_MALLOC_HOOKS": "n",
        "TSAN_OPTIONS": "symbolize=0:halt_on_error=1:exitcode=66",
    }
    return subprocess.run(command, env=os.environ | settings | environment, capture_output=True, text=True, errors="replace")


def line_of(program, address):
    """The line of src/ that calls: "zero/reduction.cpp:31". The call is before the address that it returns to."""
    found = subprocess.run(
        ["addr2line", "-i", "-e", program, hex(int(address, 16) - 1)], capture_output=True, text=True, check=True
    )
    places = [match for match in re.findall(r"/src/(\S+:\d+)", found.stdout) if not match.startswith("runtime/event.hpp")]
    return places[0] if places else None


def calls_of(program, ranks):
    """{(place, call): names of it}, of kzero's own."""
    calls = collections.defaultdict(set)
    listed = run(program, ranks, KZERO_LIST_ORDER="1")
    for call, name in re.findall(r"^order: (\w+) (\S+)$", listed.stderr, flags=re.M):
        place = name if call == "fence" else line_of(program, name)
        if place and (call != "fence" or name.startswith("kzero::")):
            calls[place, call].add(name)
    return listed.returncode, calls


build, ranks = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "2"
tests = sys.argv[3] if len(sys.argv) > 3 else "*IsWhatATrainingNeeds*"
program, preloaded = f"{build}/test_stream_order", f"{build}/tests/libucx_sleep.so"
code, calls = calls_of(program, ranks)
print(f"Nothing left out: exit code {code}, {len(calls)} calls\n\n| left out | | reported |\n|---|---|---|", flush=True)
for (place, call), names in sorted(calls.items()):
    left = run(program, ranks, KZERO_LEFT_OUT=" ".join(sorted(names)))
    reports = re.findall(r"^reported now: (.*)$", left.stderr, flags=re.M)
    print(f"| {place} | {call} | {reports[0] if reports else f'no (exit code {left.returncode})'} |", flush=True)
