"""Metrics files of made-up launches, whose times are exact binary fractions, so that sums have to be exact, too."""

import json


class Launch:
    """The records of one launch, each written when the clock says."""

    def __init__(self, began, first_step=0, start=3.0, **facts):
        self.now = began + start
        self.records = []
        self.write(
            {
                "event": "start",
                "first_step": first_step,
                "process_seconds": start,
                "hosts": ["a"],
                "grid": {"data": 1, "tensor": 1},
                **facts,
            }
        )
        self.step = first_step

    def write(self, record, **more):
        self.records.append({**record, **more, "time": self.now})
        return self

    def steps(self, count, seconds=2.0, between=0.25):
        """Steps, and the time from each to the next thing that happens."""
        for _ in range(count):
            self.now += seconds
            self.write({"event": "step", "step": self.step, "loss": 1.0, "tokens": 8, "seconds": seconds, "tokens_per_second": 4.0, "mfu": 0.5,
                        "grad_norm": 1.0, "lr": 1e-3, "loss_scale": 1, "skipped": False})  # fmt: skip
            self.step += 1
            self.now += between
        return self

    def validation(self, seconds):
        self.now += seconds
        return self.write({"event": "validation", "step": self.step, "loss": 2.0, "tokens": 8, "seconds": seconds})

    def evaluation(self, seconds):
        self.now += seconds
        return self.write({"event": "evaluation", "name": "x", "step": self.step, "loss": 2.0, "tokens": 8, "seconds": seconds})

    def checkpoint(self, stall, seconds=None):
        self.now += stall
        return self.write(
            {
                "event": "checkpoint",
                "step": self.step,
                "seconds": seconds or stall,
                "stall_seconds": stall,
                "bytes": 1,
                "folder": "c",
            }
        )

    def nodes(self, steps, rows, by="node", count=None):
        """A record of nodes: rows are (name or rank, compute_seconds, wait_seconds)."""
        made = [{"host": "a" if by == "rank" else name, "first_rank": name if by == "rank" else i, "ranks": 1, "compute_seconds": compute,
                 "wait_seconds": wait, "no_core_seconds": wait / 4, "busiest_rank": name if by == "rank" else i, "busiest_seconds": compute, "slow": compute > 10 * wait}
                for i, (name, compute, wait) in enumerate(rows)]  # fmt: skip
        spread = lambda values: {"min": min(values), "mean": sum(values) / len(values), "max": max(values)}
        return self.write(
            {
                "event": "nodes",
                "step": self.step,
                "steps": steps,
                "seconds": 1.0,
                "by": by,
                "count": count or len(rows),
                "compute_seconds": spread([row[1] for row in rows]),
                "wait_seconds": spread([row[2] for row in rows]),
                "nodes": made,
            }
        )

    def end(self, reason="completed", seconds=1.0):
        self.now += seconds
        return self.write({"event": "end", "reason": reason, "signal": "", "steps": self.step, "memory": [], "traffic": []})


def write(path, *launches, broken=()):
    """The file of these launches. Those whose numbers are in `broken` end with half a line, as after a crash."""
    with open(path, "w") as file:
        for number, launch in enumerate(launches):
            file.writelines(json.dumps(record) + "\n" for record in launch.records)
            if number in broken:
                file.write('{"event":"step","step":9,"secon\n')
    return path
