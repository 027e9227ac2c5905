"""compute-sanitizer: errors that leave the results right by chance."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor

from correctness import GPT2
from gtest_run import parse
from training import overrides_of, settings

AT_ONCE = 4
REPORTED = 25  # lines
ALONE = 45  # seconds of the first case, which the others would slow down
ERRORS = re.compile(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: \d+ hazards? displayed \()(\d+) error")
PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/compute-sanitizer")
# A sanitized kernel takes tens of times as long. If a time limit ends it, the text says that nothing was found until then.
# test_tensor once ended with a misaligned access that was avoided, not explained. The first case is to name its kernel.
ROWS = "Layernorm*:Rmsnorm*:CrossEntropy*:Reduction*:Row*:PairwiseSum*"
CASES = (
    ("memcheck", "test_tensor", "*"),
    ("memcheck", "test_kernels", "*"),
    ("racecheck", "test_kernels", f"Attention*:TensorCore*:{ROWS}"),
    ("synccheck", "test_kernels", f"Attention*:TensorCore*:{ROWS}"),
)


def find_tool(name, places):
    """The path of a tool of a CUDA toolkit, or None."""
    return shutil.which(name) or next((found for place in places if (found := shutil.which(name, path=place))), None)


def first_error(text):
    """The lines of the tool's first report: the access, the kernel, and the calls that lead there."""
    lines = [line for line in text.splitlines() if line.startswith("=========")]
    first = next(
        (at for at, line in enumerate(lines) if re.match(r"========= (?:Invalid|Error: |Uninitialized|Barrier)", line)), None
    )
    return [] if first is None else lines[first : first + REPORTED]


def report(found, name, done):
    """A check from the summary that the tool prints; without one, from what it had found when it ended."""
    text = done.text()
    log = parse(text)
    tests = f"{len(log.results)} tests" if log.results else "the run"
    errors = [int(count) for count in ERRORS.findall(text)]
    if errors:
        kinds = sorted(
            set(re.findall(r"========= ((?:Invalid|Error|Race|Uninitialized|Barrier|Program hit)[^\n]{0,80})", text))
        )
        found.check(name, sum(errors) == 0, f"{sum(errors)} errors in {tests}; {'; '.join(kinds[:3])}".rstrip("; "))
    elif done.code is None:
        early = len(re.findall(r"^========= (?:Invalid|Error: Race|Uninitialized|Barrier error)", text, re.M))
        found.check(name, early == 0, f"{early} errors in {tests} until the time limit, {done.seconds:.0f} s")
    else:
        found.check(name, False, f"no summary: {done.how()}")
    found.values[name] = first_error(text)


def sanitizer(machine, clock, found):
    tool = find_tool("compute-sanitizer", PLACES)
    if tool is None:
        found.leave_out("compute-sanitizer", "is not on this machine")
        return

    def run(case, seconds):
        check, program, tests = case
        wrapper = [tool, "--tool", check, "--target-processes", "all"]
        command = machine.command(program, f"--gtest_filter={tests}", "--gtest_color=no")
        return machine.run(f"{check}.{program}", command, seconds, wrapper)

    def run_training():
        keys = overrides_of(machine.bundle, "bf16") | {"train.steps": 2, "model.layers": 1, "run.attention": "kzero"}
        command = machine.command("kzero", "train", machine.bundle / "decks" / GPT2, *settings(keys))
        return machine.run("initcheck.kzero", command, clock.left(), [tool, "--tool", "initcheck", "--target-processes", "all"])

    cases = [case for case in CASES if machine.has(case[1])]
    for case in cases[:1]:
        report(found, f"{case[0]} {case[1]}", run(case, min(ALONE, clock.left())))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        training = pool.submit(run_training)
        for case, done in zip(cases[1:], pool.map(lambda case: run(case, clock.left()), cases[1:])):
            report(found, f"{case[0]} {case[1]}", done)
        report(found, "initcheck kzero", training.result())
