"""Where the time of a run went, over all its launches, from the first start to the last record.

Steps that a later launch ran again count as recomputed. A launch that was killed ends with its last record; the time from then to
the next launch is lost. The time after a launch that had nothing left to do is a pause: it is no part of the run.
"""

from dataclasses import dataclass, field

import records

# In the order of bars and tables, with the meaning of each.
PARTS = {
    "productive": "steps that count",
    "recomputed": "steps that a later launch ran again",
    "evaluation": "validation and evaluations",
    "checkpoint": "training waited for a checkpoint",
    "start": "from the process to its first step",
    "other": "between steps, and the end of a launch",
    "lost": "between the last record of a launch and the next launch",
}
EVENTS = {
    "validation": ("evaluation", "seconds"),
    "evaluation": ("evaluation", "seconds"),
    "checkpoint": ("checkpoint", "stall_seconds"),
}


@dataclass
class Interruption:
    launch: int  # the number of the launch, from 1
    reason: str  # as in the end record; "killed" without one
    steps: int  # done until then
    resumed: int  # the step at which the next launch began
    seconds: float = 0  # of the steps that the next launch or a later one ran again
    away: float = 0  # seconds until the next launch

    @property
    def lost(self):
        return max(0, self.steps - self.resumed)


@dataclass
class Goodput:
    seconds: dict = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    interruptions: list = field(default_factory=list)
    launches: int = 0
    paused: float = 0  # seconds after launches that had nothing left to do, in no part

    @property
    def total(self):
        return sum(self.seconds.values())

    def share(self, part):
        return self.seconds[part] / self.total if self.total > 0 else 0


def first_step(launch):
    return launch[0].get("first_step") or 0


def began(launch):
    return launch[0]["time"] - launch[0]["process_seconds"]


def has_times(launch):
    return "process_seconds" in launch[0] and all("time" in record for record in (launch[0], launch[-1]))


def steps_of(launch):
    return [record for record in launch if record.get("event") == "step"]


def of_launch(launch, undone_from):
    """The seconds of one launch by part; steps from `undone_from` on were run again."""
    found = dict.fromkeys(PARTS, 0.0)
    for record in launch:
        if record.get("event") == "step":
            part = "recomputed" if record["step"] >= undone_from else "productive"
            found[part] += record.get("seconds") or 0
        elif record.get("event") in EVENTS:
            part, name = EVENTS[record["event"]]
            found[part] += record.get(name) or 0
    found["start"] = launch[0]["process_seconds"]
    found["other"] = launch[-1]["time"] - began(launch) - sum(found.values())
    return found


def reason_of(launch):
    end = launch[-1] if launch[-1].get("event") == "end" else {}
    return end.get("reason", "killed")


def away(launch, following):
    """Seconds from the last record of a launch to the next launch."""
    return max(0.0, began(following) - launch[-1]["time"])


def interruption(number, launch, following, undone_from):
    steps = steps_of(launch)
    done = steps[-1]["step"] + 1 if steps else first_step(launch)
    again = sum(record.get("seconds") or 0 for record in steps if record["step"] >= undone_from)
    return Interruption(number, reason_of(launch), done, first_step(following), again, away(launch, following))


def of(run):
    """The goodput of a run; None if its file has no times, as those of older versions."""
    launches = run.launches
    if not launches or not all(map(has_times, launches)):
        return None
    result = Goodput(launches=len(launches))
    undone_from = float("inf")
    for number in range(len(launches) - 1, -1, -1):
        for part, seconds in of_launch(launches[number], undone_from).items():
            result.seconds[part] += seconds
        if number + 1 == len(launches):
            pass
        elif reason_of(launches[number]) in records.FINISHED:
            result.paused += away(launches[number], launches[number + 1])
        else:
            found = interruption(number + 1, launches[number], launches[number + 1], undone_from)
            result.seconds["lost"] += found.away
            result.interruptions.insert(0, found)
        undone_from = min(undone_from, first_step(launches[number]))
    return result
