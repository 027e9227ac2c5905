"""The part that measures the same models in PyTorch on the same device, with pytorch_steps.py and update_beside.py."""

import json
import sys
from pathlib import Path

from device_memory import UsedMemory
from programs import run

SCRIPT = Path(__file__).with_name("pytorch_steps.py")
# (model, sequences, tokens), as speed.CASES. Compiling takes most of the time, half a minute for the small model.
CASES = (
    ("gpt2-124m", 32, 1024),
    ("gpt2-124m-50304", 32, 1024),
    ("llama-1b", 4, 2048),
    ("gpt2-1.5b", 8, 1024),
    ("llama-1b", 16, 2048),
    ("gpt2-124m", 64, 1024),
)
REHEARSED = (("tiny-gpt2", 2, 64), ("tiny-llama", 2, 64))
BESIDE = Path(__file__).with_name("update_beside.py")
BESIDE_CASES = ("gpt2-1.5b,8,1024", "gpt2-124m,32,1024", "llama-1b,4,2048")
BESIDE_REHEARSED = ("tiny-gpt2,2,64", "tiny-llama,2,64")


def beside(machine, clock, found):
    """The forward of a model's blocks after and beside an update of their parameters."""
    clock.require(20)
    cases = BESIDE_REHEARSED if machine.rehearses else BESIDE_CASES
    done = run([sys.executable, BESIDE, *cases], machine.logs / "update_beside.log", min(60, clock.left()))
    measured = [json.loads(line) for line in done.text().splitlines() if line.startswith("{")]
    found.check("update_beside", done.code == 0 and len(measured) == len(cases), done.how())
    for line in measured:
        found.values[f"beside {line['case']}"] = line["milliseconds"]
        times = ", ".join(f"{name} {ms:.2f}" for name, ms in line["milliseconds"].items())
        found.lines.append(f"  PyTorch {line['case']:<18} ms: {times}")


def pytorch(machine, clock, found):
    """A step of each case in the Python that runs this script, which has to have PyTorch."""
    done = run(
        [sys.executable, "-c", "import torch; print(torch.__version__)"], machine.logs / "version.log", min(60, clock.left())
    )
    if done.code != 0:
        found.leave_out("PyTorch", "is not on this machine")
        return
    beside(machine, clock, found)
    for model, sequences, tokens in REHEARSED if machine.rehearses else CASES:
        clock.require(20)
        name = f"{model} {sequences}x{tokens}"
        command = [sys.executable, SCRIPT, model, sequences, tokens]
        with UsedMemory() as memory:
            done = run(command, machine.logs / f"{name.replace(' ', '_')}.log", min(150, clock.left()))
        lines = done.text().splitlines()
        if not found.check(name, done.code == 0 and lines, done.how()):
            continue
        measured = json.loads(lines[-1]) | {"memory_mib": memory.peak}
        found.values[name] = measured
        found.lines.append(
            f"  PyTorch {measured['torch']} {name:<20}{measured['seconds'] * 1e3:8.1f} ms "
            f"{measured['tokens_per_second'] / 1e3:8.1f} k tokens/s  memory {memory.peak or 0:6d} MiB"
        )
