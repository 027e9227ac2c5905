"""Results of the parts of the first hour, as JSON and as a summary of at most sixty lines."""

from dataclasses import asdict, dataclass, field

LONGEST_SUMMARY = 60
LONGEST_LINE = 160
PASSED, FAILED, NOT_RUN = "passed", "FAILED", "not run"


@dataclass
class Check:
    name: str
    state: str
    text: str


@dataclass
class Found:
    """One part's results."""

    part: str
    state: str = NOT_RUN
    reason: str = ""  # why it was not run, or not to its end
    seconds: float = 0.0
    checks: list = field(default_factory=list)
    lines: list = field(default_factory=list)  # measurements for people
    values: dict = field(default_factory=dict)  # the same for programs

    def check(self, name, passed, text):
        self.checks.append(Check(name, PASSED if passed else FAILED, text))
        return passed

    def leave_out(self, name, reason):
        self.checks.append(Check(name, NOT_RUN, reason))

    def count(self, state):
        return sum(check.state == state for check in self.checks)

    def close(self, reason=""):
        self.reason = reason
        self.state = FAILED if self.count(FAILED) else PASSED if self.count(PASSED) else NOT_RUN

    def line(self):
        counts = [f"{self.count(state)} {state}" for state in (PASSED, FAILED, NOT_RUN) if self.count(state)]
        return f"{self.part:<12}{', '.join(counts) or self.state}; {self.seconds:.0f} s" + (
            f"; {self.reason}" if self.reason else ""
        )


def first_line(text):
    return text.splitlines()[0][:LONGEST_LINE] if text else ""


def summary(head, found):
    """Lines for people: the state of each part, then what failed, then measurements. Lines that do not fit are counted."""
    lines = [*head, *(part.line() for part in found)]
    details = [
        f"{check.state:<8}{part.part} {check.name}: {first_line(check.text)}"
        for state in (FAILED, NOT_RUN)
        for part in found
        for check in part.checks
        if check.state == state
    ]
    measured = [line[:LONGEST_LINE] for part in found for line in part.lines]
    room = LONGEST_SUMMARY - len(lines) - 1
    shown = details[: max(room - len(measured), room // 2)]
    shown += measured[: room - len(shown)]
    lines += shown
    if left := len(details) + len(measured) - len(shown):
        lines.append(f"... and {left} more lines in results.json")
    return lines


def as_json(facts, head, found):
    """The record of an hour: the card, the libraries and the commit, then all that the parts found."""
    return {"facts": facts, "head": head, "parts": [asdict(part) for part in found]}
