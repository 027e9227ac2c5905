#!/usr/bin/env python3
"""A bundle's programs without a device: links to this file act by their names.

test_*    a program of GoogleTest. The variable STAND_IN_TESTS has "NAME=WAY" words: ok, fail, die, hang, sticky (fails, and all
          later tests of the process do), lone (fails on rank 1 only) or early (the process ends before any test).
kzero     train writes a metrics file, convert a file without weights, check --algorithms a table. STAND_IN_KZERO: "" (works), no_device, broken or unloadable
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

LOSSES = {("fp32", "kzero"): 10.0, ("bf16", "kzero"): 10.001, ("bf16", "cudnn"): 10.002}


def run_tests(ways, excluded):
    left = [(name, way) for name, way in ways if name not in excluded]
    print(f"[==========] Running {len(left)} tests from 1 test suite.")
    poisoned = False
    for name, way in left:
        print(f"[ RUN      ] {name}", flush=True)
        if way == "die":
            print("about to abort", flush=True)
            os.kill(os.getpid(), signal.SIGABRT)
        if way == "hang":
            time.sleep(60)
        if way == "sticky":
            poisoned = True
            print("cudaDeviceSynchronize() error: misaligned address")
        failed = poisoned or way == "fail" or (way == "lone" and os.environ.get("PMI_RANK") == "1")
        print(f"[  FAILED  ] {name} (0 ms)" if failed else f"[       OK ] {name} (0 ms)")
    print(f"[==========] {len(left)} tests from 1 test suite ran. (0 ms total)")


def google_test(arguments):
    ways = [word.split("=") for word in os.environ["STAND_IN_TESTS"].split()]
    if any(way == "early" for _, way in ways):
        sys.exit("error while loading shared libraries: libx.so")
    filters = next(a for a in arguments if a.startswith("--gtest_filter=")).partition("=")[2]
    run_tests(ways, filters.partition("-")[2].split(":"))


def train(arguments):
    state = os.environ.get("STAND_IN_KZERO", "")
    if state == "no_device":
        sys.exit(
            "kzero: no Cuda device to compute on: cudaGetDeviceCount: no CUDA-capable device is detected /x/Kokkos_Core.cpp:135"
        )
    if state == "broken":
        sys.exit("kzero: something else")
    folder = os.path.dirname(arguments[0])
    if not os.path.isdir(folder):
        sys.exit(f"kzero: the folder {folder} does not exist")
    keys = dict(word.split("=", 1) for word in arguments[1:])
    steps = int(keys["train.steps"])
    kind = keys.get("train.precision", "fp32"), keys.get("run.attention", "kzero")
    with open(keys["run.metrics"], "w") as file:
        file.write(json.dumps({"event": "start", "versions": {"execution": "Cuda"}}) + "\n")
        for step in range(steps):
            record = {"event": "step", "step": step, "loss": LOSSES[kind] - step, "grad_norm": 1.5, "seconds": 0.01}
            file.write(json.dumps(record) + "\n")
        file.write(json.dumps({"event": "end", "reason": "completed"}) + "\n")


def main():
    name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
    if name.startswith("test_"):
        google_test(arguments)
    elif arguments[0] == "train":
        train(arguments[1:])
    elif arguments[0] == "check" and "--algorithms" in arguments:
        Path(arguments[-1]).write_text("a table\n")
        print(f"{arguments[-1]}: 20 different products")
    elif arguments[0] == "convert":
        Path(arguments[2]).write_bytes(b"\2" + 7 * b"\0" + b"{}")  # safetensors without a tensor
    elif os.environ.get("STAND_IN_KZERO") == "unloadable":
        print("error while loading shared libraries: libx.so")
        sys.exit(127)
    else:
        print(f"{name} {' '.join(arguments)}")


if __name__ == "__main__":
    main()
