"""Runs that others published, as `kzero plan` predicts them."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def settings(overrides):
    return [f"{key}={value}" for key, value in overrides.items()]


def plans(kzero, runs, rates_of):
    """The plan of each run's settings(), with the rates file of rates_of(run)."""

    def one(run):
        command = [str(kzero), "plan", *run.settings(), "--threads", "1", "--rates", str(rates_of(run)), "--json"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):  # 3: larger than rank.memory; the run was made nevertheless
            raise SystemExit(done.stderr)
        return json.loads(done.stdout)[0]

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, runs))


def error(run, predicted):
    return predicted / run.printed - 1
