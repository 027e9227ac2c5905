#!/usr/bin/env python3
"""Many tiny steps with checkpoints and restarts: memory, open files and files on the disk must not grow.

    KZERO=build/release/kzero KZERO_LAUNCHER="mpiexec -n" PYTHONPATH=tests/unit/app python3 tests/faults/soak.py
        [--steps 10000] [--jobs 10] [--every 5]

Each job does its share of the steps and resumes the one before. Jobs alternate between writing alone, in the
background, and two ranks to a file.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from launch import DECK, KZERO, LAUNCHER, ranks_of, records

WAYS = ([], ["checkpoint.asynchronous=true"], ["checkpoint.ranks_per_file=2"])
WARM_UP = 0.25  # of a job: buffers reach their sizes
MAX_GROWTH_KIB = 1024  # of a rank's resident memory after it


def sample(pid):
    """(resident KiB, open files, threads)"""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]), len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"])


def run_job(folder, job, steps_of_job, arguments):
    """Runs one job; returns complaints."""
    way, metrics = WAYS[job % len(WAYS)], folder / f"{job}.jsonl"
    command = [
        *LAUNCHER,
        "2",
        KZERO,
        "train",
        "deck.toml",
        "train.steps=1000000",
        f"run.max_steps={steps_of_job}",
        f"run.metrics={metrics.name}",
        f"checkpoint.every={arguments.every}",
        *way,
    ]
    launch = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    samples, ranks = {}, {}
    while launch.poll() is None:
        time.sleep(0.05)
        done = metrics.read_text().count('"step",') if metrics.exists() else 0
        ranks = ranks or (ranks_of(launch) if done > 0 else {})
        for rank, pid in ranks.items():
            try:
                samples.setdefault(rank, []).append((done, *sample(pid)))
            except (OSError, KeyError, ValueError):
                continue  # it has just ended
    complaints = [] if launch.returncode == 75 else [f"job {job}: exit code {launch.returncode}"]
    for rank, taken in samples.items():
        warm = [s for s in taken if s[0] >= WARM_UP * steps_of_job]
        if len(warm) < 2:
            continue
        half = len(warm) // 2
        growth = max(s[1] for s in warm[half:]) - max(s[1] for s in warm[:half])
        # The least of each half: a save has three files open, which a sample meets or not; what leaks stays open between saves.
        handles = min(s[2] for s in warm[half:]) - min(s[2] for s in warm[:half])
        threads = max(s[3] for s in warm[half:]) - max(s[3] for s in warm[:half])
        print(
            f"job {job} {' '.join(way) or 'plain'}, rank {rank}: {len(taken)} samples, resident {warm[-1][1]} KiB, "
            f"{growth:+} KiB, open files {handles:+}, threads {threads:+}",
            flush=True,
        )
        if growth > MAX_GROWTH_KIB or handles > 2 or threads > 1:
            complaints.append(f"job {job}, rank {rank}: grew")
    names = sorted(p.name for p in (folder / "saved").iterdir())
    if len(names) != 5 or names[:2] != ["end.json", "latest"]:
        complaints.append(f"job {job}: left {names}")
    first = records(metrics, "start")[-1]["first_step"]
    if first != job * steps_of_job:
        complaints.append(f"job {job}: began at {first}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--every", type=int, default=5)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kzero_soak_"))
    try:
        (folder / "deck.toml").write_text(DECK)
        (folder / "text").write_bytes(b"".join(b"%d bottles of beer, " % i for i in range(200)))
        complaints = []
        for job in range(arguments.jobs):
            complaints += run_job(folder, job, arguments.steps // arguments.jobs, arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
