#!/usr/bin/env python3
"""Bandwidth of checkpoints, of the disk itself and of torch.distributed.checkpoint, in turns, on the same state.

    python3 tests/perf/checkpoint.py [--kzero build/release/kzero] [--folder .] [--ranks 2] [--rounds 3]
        [--layers 6] [--torch PYTHON_WITH_TORCH]

Writing ends on the disk (fsync) and, for kzero, includes checksums and reading back; reading begins with the files out of
the page cache and, for kzero, includes the comparison of every checksum and the hash of what was loaded. The disk's own
rate is dd's from memory with conv=fsync, and to nowhere, by one process and by one a rank; the better counts. Prints a
Markdown table: medians in MB/s, and their ratio to the disk's.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DECK = """
[model]
layers = {layers}
hidden = 512
heads = 8
sequence = 16
vocab = 32000
[train]
steps = 1000
global_batch = {ranks}
micro_batch = 1
[data]
files = ["text"]
[checkpoint]
folder = "saved"
[run]
metrics = "metrics.jsonl"
peak_tflops = 1.0
threads = 1
"""

TORCH = """
import sys, time, json, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
mode, folder, elements = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
part = elements // dist.get_world_size() // 48
state = {f"{kind}.{i}": DTensor.from_local(torch.rand(part), mesh, [Shard(0)])
         for kind in ("master", "first", "second") for i in range(48)}
dist.barrier()
begin = time.monotonic()
(dcp.save if mode == "write" else dcp.load)(state, checkpoint_id=folder)
dist.barrier()
if dist.get_rank() == 0:
    print(json.dumps({"bytes": 3 * 48 * part * dist.get_world_size() * 4, "seconds": time.monotonic() - begin}))
dist.destroy_process_group()
"""


def out_of_cache(folder):
    for path in Path(folder).rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Disk:
    def __init__(self, arguments, folder, size):
        self.ranks, self.folder = arguments.ranks, folder
        self.source = Path(tempfile.mkstemp(dir="/dev/shm")[1])
        with open(self.source, "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
        self.megabytes = size >> 20

    def dd(self, processes, pairs):
        begin = time.monotonic()
        count = self.megabytes // processes
        running = [
            subprocess.Popen(["dd", "bs=1M", f"count={count}", *pair], stderr=subprocess.DEVNULL)
            for pair in pairs(processes, count)
        ]
        for process in running:
            if process.wait() != 0:
                sys.exit("dd failed")
        return count * processes * (1 << 20) / (time.monotonic() - begin) / 1e6

    def write(self):
        def pairs(processes, count):
            return [
                [f"if={self.source}", f"skip={i * count}", f"of={self.folder}/dd{processes}{i}", "conv=fsync"]
                for i in range(processes)
            ]

        return max(self.dd(n, pairs) for n in sorted({1, self.ranks}))

    def read(self):
        rates = []
        for n in sorted({1, self.ranks}):
            out_of_cache(self.folder)
            rates.append(self.dd(n, lambda p, count: [[f"if={self.folder}/dd{p}{i}", "of=/dev/null"] for i in range(p)]))
        for path in self.folder.glob("dd*"):
            path.unlink()
        return max(rates)


class Kzero:
    def __init__(self, arguments, folder, *overrides):
        self.folder, self.overrides, self.arguments = folder, overrides, arguments

    def run(self, *more):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        command = [
            "mpiexec",
            "-n",
            str(self.arguments.ranks),
            self.arguments.kzero,
            "train",
            "deck.toml",
            *self.overrides,
            *more,
        ]
        result = subprocess.run(command, cwd=self.folder, stdout=subprocess.DEVNULL)
        if result.returncode not in (0, 75):
            sys.exit(f"{command} ended with {result.returncode}")
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def write(self):
        shutil.rmtree(self.folder / "saved", ignore_errors=True)
        (self.saved,) = [r for r in self.run("run.max_steps=1") if r["event"] == "checkpoint"]
        return self.saved["bytes"] / self.saved["seconds"] / 1e6

    def read(self):
        out_of_cache(self.folder / "saved")
        start = self.run("run.max_steps=1", "checkpoint.resume=true")[0]
        return self.saved["bytes"] / start["load_seconds"] / 1e6


class Torch:
    def __init__(self, arguments, folder, elements):
        self.script = folder / "rival.py"
        self.script.write_text(TORCH)
        self.folder, self.elements, self.arguments = folder / "torch", elements, arguments

    def run(self, mode):
        command = [
            self.arguments.torch,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            str(self.arguments.ranks),
            self.script,
            mode,
            self.folder,
            str(self.elements),
        ]
        result = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        answer = json.loads(result.stdout.splitlines()[-1])
        return answer["bytes"] / answer["seconds"] / 1e6

    def write(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.run("write")

    def read(self):
        out_of_cache(self.folder)
        return self.run("read")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kzero", default="build/release/kzero", type=os.path.abspath)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--torch", help="a Python that has torch")
    arguments = parser.parse_args()

    folder, sources = Path(tempfile.mkdtemp(dir=arguments.folder)), []
    try:
        (folder / "deck.toml").write_text(DECK.format(layers=arguments.layers, ranks=arguments.ranks))
        (folder / "text").write_bytes(os.urandom(1 << 16))
        first = Kzero(arguments, folder)
        first.write()
        size = first.saved["bytes"]
        disk = Disk(arguments, folder, size)
        sources.append(disk.source)
        sides = {
            "disk (dd)": disk,
            "kzero": first,
            "kzero, one file": Kzero(arguments, folder, f"checkpoint.ranks_per_file={arguments.ranks}"),
        }
        if arguments.torch:
            sides["torch.distributed.checkpoint"] = Torch(arguments, folder, size // 12)
        rates = {name: {"write": [], "read": []} for name in sides}
        for _ in range(arguments.rounds):
            for name, side in sides.items():
                rates[name]["write"].append(side.write())
                rates[name]["read"].append(side.read())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for source in sources:
            source.unlink()
    print(f"{size / 1e6:.0f} MB, {arguments.ranks} ranks\n")
    print("| | write MB/s | of the disk's | rounds | read MB/s | of the disk's | rounds |\n|---|---|---|---|---|---|---|")
    base = {mode: statistics.median(rates["disk (dd)"][mode]) for mode in ("write", "read")}
    for name, modes in rates.items():
        cells = []
        for mode, values in modes.items():
            middle = statistics.median(values)
            cells += [f"{middle:.0f}", f"{middle / base[mode]:.2f}", ", ".join(f"{v:.0f}" for v in values)]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
