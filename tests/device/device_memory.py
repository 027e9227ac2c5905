"""The memory of a device: what is used, what there is, and what kzero plans."""

import json
import shutil
import subprocess
import threading

from training import rehearsed, settings


class UsedMemory:
    """The largest memory in use on the device while the object is open, in MiB; None if nvidia-smi is missing."""

    def __init__(self):
        self.peak = None

    def __enter__(self):
        self.process = None
        if tool := shutil.which("nvidia-smi"):
            query = [tool, "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "200"]
            self.process = subprocess.Popen(query, stdout=subprocess.PIPE, text=True)
            self.thread = threading.Thread(target=self.read)
            self.thread.start()
        return self

    def read(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.peak = max(self.peak or 0, int(line))

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.thread.join()


def device_mib(machine):
    """The device's memory in MiB; infinite if nvidia-smi is missing."""
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    lines = machine.run("memory", query, 30).text().split()
    return float(lines[0]) if lines and lines[0].isdigit() else float("inf")


def planned_mib(machine, name, deck, overrides, seconds):
    """The planned memory of a rank, in MiB, or None."""
    overrides = rehearsed(deck, overrides) if machine.rehearses else overrides
    command = machine.command("kzero", "plan", machine.bundle / "decks" / deck, *settings(overrides), "--ranks", 1, "--json")
    done = machine.run(f"plan.{name}", command, seconds)
    try:
        return json.loads(done.text())[0]["total_bytes"] / 2**20
    except (ValueError, LookupError):
        return None
