"""Runs a test program of GoogleTest to its end, although tests may kill the process or leave its device unusable.

After an error such as an illegal address every later CUDA call of the process fails. The tests after such a test, or after one
that ends the process, run in a new process.
"""

import re
from dataclasses import dataclass, field

LINE = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] ([\w./]+)")
FINISHED = re.compile(r"\[={10}\] .* ran\.")
STICKY = re.compile(
    r"misaligned address|illegal memory access|illegal instruction|unspecified launch failure|hardware stack error|"
    r"invalid program counter|device-side assert|uncorrectable ECC error|launch timed out|invalid address space"
)
MAX_PROCESSES = 25
LONGEST_PROCESS = 240  # seconds
LONGEST_MESSAGE = 12  # lines


@dataclass
class Log:
    """The results that one process printed about its tests."""

    results: dict = field(default_factory=dict)  # "OK", "FAILED" or "SKIPPED" of each test that ended, in their order
    messages: dict = field(default_factory=dict)  # lines that a test printed
    open: str = ""  # the test that did not end
    finished: bool = False


def parse(text):
    log = Log()
    for line in text.splitlines():
        if FINISHED.match(line):
            log.finished, log.open = True, ""
            break
        if match := LINE.search(line):
            word, test = match.groups()
            if word == "RUN":
                log.open = test
                log.messages[test] = []
            elif test == log.open:
                log.results[test] = word
                log.open = ""
        elif log.open:
            log.messages[log.open].append(line)
    return log


@dataclass
class Tests:
    """The results of a program. `failed` and `died` map tests to their reasons."""

    passed: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    failed: dict = field(default_factory=dict)
    died: dict = field(default_factory=dict)
    processes: int = 0
    problem: str = ""  # why not all tests ran

    def ended(self):
        return [*self.passed, *self.skipped, *self.failed, *self.died]

    def is_good(self):
        return not (self.failed or self.died or self.problem) and bool(self.passed)

    def text(self):
        count = len(self.passed) + len(self.failed) + len(self.died)
        parts = [f"{len(self.passed)} of {count} passed"]
        for word, tests in (("failed", self.failed), ("died", self.died)):
            if tests:
                parts.append(f"{len(tests)} {word}")
        if self.processes > 1:
            parts.append(f"{self.processes} processes")
        if self.problem:
            parts.append(self.problem)
        return ", ".join(parts)


def united(logs):
    """One log of those of all ranks: a test counts as its worst result, and is open if a rank did not end it."""
    whole = Log(finished=all(log.finished for log in logs))
    rank = {"OK": 0, "SKIPPED": 1, "FAILED": 2}
    for log in logs:
        for test, result in log.results.items():
            whole.results[test] = max(whole.results.get(test, "OK"), result, key=rank.get)
            if result == "FAILED" or test not in whole.messages:
                whole.messages[test] = log.messages[test]
    if not whole.finished:
        behind = min(logs, key=lambda log: len(log.results))  # the others wait for it
        whole.open = behind.open
        whole.messages[whole.open] = behind.messages.get(behind.open, [])
        whole.results.pop(whole.open, None)
    return whole


def reason_of(lines, otherwise):
    """The output of a test, shortened, or how its process ended."""
    shown = [line for line in lines if line.strip()]
    return "\n".join([*shown[-LONGEST_MESSAGE:], otherwise] if otherwise else shown[-LONGEST_MESSAGE:])


def sort_into(tests, log, ending):
    """Adds a process's results. Failures after an error that stays are not counted: those tests run again."""
    sticky = ""
    for test, result in log.results.items():
        message = "\n".join(log.messages[test])
        if result == "OK":
            tests.passed.append(test)
        elif result == "SKIPPED":
            tests.skipped.append(test)
        elif sticky:
            continue
        elif found := STICKY.search(message):
            sticky = found.group()
            tests.died[test] = reason_of(log.messages[test], "")
        else:
            tests.failed[test] = reason_of(log.messages[test], "")
    if log.open and not sticky:
        tests.died[log.open] = reason_of(log.messages[log.open], ending)
    return sticky


def run_tests(launch, clock, chosen="*"):
    """Runs the tests that match a positive filter. launch(number, filter, seconds) runs process `number` and returns
    (how it ended, the texts of its ranks)."""
    tests = Tests()
    while tests.processes < MAX_PROCESSES:
        if clock.left() < 2:
            tests.problem = "no time left for the others"
            break
        skipped = f"-{':'.join(tests.ended())}" if tests.processes else ""
        ending, texts = launch(tests.processes, chosen + skipped, min(clock.left(), LONGEST_PROCESS))
        tests.processes += 1
        log = united([parse(text) for text in texts])
        before = len(tests.ended())
        sticky = sort_into(tests, log, ending)
        if log.finished and not sticky:
            break
        if len(tests.ended()) == before:
            tests.problem = f"no test ran: {ending}"
            break
    else:
        tests.problem = f"given up after {MAX_PROCESSES} processes"
    return tests


def test_program(machine, clock, program, ranks=None, chosen="*", label=""):
    """Runs a test program of the bundle, on several ranks if `ranks` is given."""
    name = label or (f"{program}_np{ranks}" if ranks else program)

    def launch(number, filters, seconds):
        log = f"{name}.{number}"
        arguments = [f"--gtest_filter={filters}", "--gtest_color=no"]
        if not ranks:
            done = machine.run(log, machine.command(program, *arguments), seconds)
            return done.how(), [done.text()]
        # Each rank has a log of its own, since mpiexec mixes what ranks print.
        into = [machine.logs / f"{log}.rank{rank}.log" for rank in range(ranks)]
        shell = ["bash", "-c", 'exec "$0" "${@:2}" >"$1.rank$PMI_RANK.log" 2>&1']
        launcher = machine.command(program, ranks=ranks)[:-1]
        done = machine.run(log, [*launcher, *shell, machine.program(program), machine.logs / log, *arguments], seconds)
        return done.how(), [path.read_text(errors="replace") if path.exists() else "" for path in into]

    return run_tests(launch, clock, chosen)
