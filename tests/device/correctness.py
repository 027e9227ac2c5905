"""Parts that ask whether a device computes what it should: packaging, unit tests, losses, attention, bits."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor

from gtest_run import test_program
from training import farthest_sample, initial_weights, largest_difference, overrides_of, read_references, train, train_once

GPT2 = "gpt2-124m.toml"
UNITS = ("test_kernels", "test_tensor", "test_model", "test_optim", "test_runtime")
AT_ONCE = 5  # programs that share the device
NO_DEVICE = re.compile(r"no \w+ device to compute on: .*?(?= \S+\.cpp:\d+|\n|$)", re.I)
# Of the loss, about 10. fp32: rounding of sums in another order, over five steps. bf16: an eighth of a unit in the last place of 10.
FP32_LOSS, BF16_LOSS = 1e-3, 5e-3
WEIGHTS = 1e-5  # the host and the device may contract multiplications and additions in other places


def packaging(machine, clock, found):
    """Libraries, one CUDA runtime, the driver, and whether a program finds a device. Sets machine.no_device."""
    runtimes = set()
    for name in machine.programs():
        done = machine.run(f"ldd.{name}", ["ldd", machine.program(name)], min(20, clock.left()))
        missing = [line.strip() for line in done.text().splitlines() if "not found" in line]
        runtimes |= set(re.findall(r"libcudart\.so\S* => (\S+)", done.text()))
        if missing or done.code != 0:
            found.check(f"libraries of {name}", False, "; ".join(missing) or done.how())
    if not found.checks:
        found.check("libraries", True, f"those of {len(machine.programs())} programs are all here")
    if machine.rehearses:
        found.leave_out("CUDA runtime", "a rehearsal on a host")
    else:
        found.check("CUDA runtime", len(runtimes) == 1, f"libcudart: {', '.join(sorted(runtimes)) or 'none'}")
    tool = shutil.which("nvidia-smi")
    if tool:
        query = [tool, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        done = machine.run("nvidia-smi", query, min(30, clock.left()))
        found.check("nvidia-smi", done.code == 0, done.text().strip() or done.how())
        machine.facts["card"] = done.text().strip()
    else:
        found.leave_out("nvidia-smi", "is not on this machine")
    version = machine.run("version", machine.command("kzero", "--version", ranks=2), min(60, clock.left()))
    if found.check("kzero --version on two ranks", version.code == 0, version.how()):
        start(machine, clock, found)
    else:
        machine.no_device = f"the bundle's programs do not start here: {version.how()}"


def start(machine, clock, found):
    """One step of a small training. Without a device the run says so, which is not a failure of the bundle."""
    overrides = overrides_of(machine.bundle, "fp32") | {"train.steps": 1}
    training = train(machine, "start", "tiny.toml", overrides, min(90, clock.left()))
    if match := NO_DEVICE.search(training.done.text()):
        machine.no_device = match.group()
        found.leave_out("one step", "needs a device")
        training = train(machine, "start_np2", "tiny.toml", overrides, min(90, clock.left()), ranks=2)
        found.check("two ranks find none either", bool(NO_DEVICE.search(training.done.text())), training.done.how())
        return
    machine.facts["versions"] = training.start.get("versions", {})
    found.check("one step", training.is_complete(), training.done.how())


def report_tests(found, name, tests):
    """A check for a program, and one for each test that did not pass."""
    found.check(name, tests.is_good(), tests.text())
    for word, reasons in (("died in", tests.died), ("failed", tests.failed)):
        for test, reason in reasons.items():
            found.check(f"{name} {word} {test}", False, reason.splitlines()[-1] if reason else "")
    found.values[name] = {"passed": len(tests.passed), "failed": tests.failed, "died": tests.died, "skipped": tests.skipped}


def units(machine, clock, found):
    """Test programs on one rank, several at once: a device that fails for one process serves the others."""
    programs = [name for name in UNITS if machine.has(name)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = pool.map(lambda name: test_program(machine, clock, name), programs)
        for name, tests in zip(programs, results):
            report_tests(found, name, tests)
    for name in UNITS:
        if name not in programs:
            found.leave_out(name, "is not in the bundle")


def device_run(machine, clock, precision, attention):
    """Five steps of gpt2-124m: the deck of the references, or with cuDNN's attention."""
    overrides = overrides_of(machine.bundle, precision) | {"run.attention": attention}
    clock.require(5)
    return train_once(machine, f"gpt2.{precision}.{attention}", GPT2, overrides, min(120, clock.left()))


def losses(machine, clock, found):
    """Losses and initial weights against those that a host computed."""
    references = read_references(machine.bundle)
    if not references:
        found.leave_out("losses", "the bundle has no references")
        return
    for precision, bound in (("fp32", FP32_LOSS), ("bf16", BF16_LOSS)):
        training = device_run(machine, clock, precision, "kzero")
        expected = references["runs"][precision]["loss"]
        found.values[precision] = {"loss": training.losses(), "host": expected}
        if not training.is_complete():
            found.check(f"{precision} losses", False, training.done.how())
            continue
        far = largest_difference(training.losses(), expected)
        found.check(f"{precision} losses", far <= bound, f"differ from the host's by {far:.2e}, at most {bound:.0e}")
    clock.require(15)
    training, weights = initial_weights(machine, "weights", GPT2, overrides_of(machine.bundle, "fp32"), min(90, clock.left()))
    if weights is None:
        found.check("initial weights", False, training.done.how())
        return
    far = farthest_sample(weights["samples"], references["weights"]["samples"])
    same = weights["sha256"] == references["weights"]["sha256"]
    text = "have the host's bits" if same else f"differ from the host's bits; samples by {far:.1e} of the largest"
    found.check("initial weights", far <= WEIGHTS, text)


def attention(machine, clock, found):
    """cuDNN's attention against kzero's own."""
    own, cudnn = (device_run(machine, clock, "bf16", name) for name in ("kzero", "cudnn"))
    for name, training in (("kzero", own), ("cudnn", cudnn)):
        if not training.is_complete():
            found.check(f"attention {name}", False, training.done.how())
            return
    far = largest_difference(own.losses(), cudnn.losses())
    found.check("cudnn and kzero", far <= BF16_LOSS, f"losses differ by {far:.2e}, at most {BF16_LOSS:.0e}")
    if machine.rehearses:
        found.leave_out("cudnn is in use", "kzero's attention is in its place")
    else:
        found.check("cudnn is in use", own.bits() != cudnn.bits(), "its bits differ from those of kzero's attention")


def bits(machine, clock, found):
    """The same run twice."""
    for precision, name in (("fp32", "kzero"), ("bf16", "kzero"), ("bf16", "cudnn")):
        first = device_run(machine, clock, precision, name)
        overrides = overrides_of(machine.bundle, precision) | {"run.attention": name}
        clock.require(5)
        second = train(machine, f"again.{precision}.{name}", GPT2, overrides, min(120, clock.left()))
        both = first.is_complete() and second.is_complete()
        same = both and first.bits() == second.bits()
        text = ("the same" if same else "differ") if both else (first if not first.is_complete() else second).done.how()
        found.check(f"{precision}, {name}: twice the same bits", same, text)
