#!/usr/bin/env python3
"""Draws how long the nodes of runs computed and waited in a step. For a run on one node, draws its ranks instead."""

import math

import figure
import matplotlib.pyplot as plt

MAX_LINES = 4  # nodes with their own line; if there are more, the busiest
LINES = [("#d55e00", "-"), ("#0072b2", (0, (6, 2))), ("#009e73", (0, (1.5, 1.2))), ("#cc79a7", (0, (7, 2, 1.5, 2)))]


def name_of(row, by):
    return f"rank {row['first_rank']}" if by == "rank" else row["host"]


class Node:
    """A node's sums over the records that list it."""

    def __init__(self, name):
        self.name, self.steps, self.compute, self.wait, self.no_core, self.slow = name, 0, 0.0, 0.0, 0.0, False
        self.busiest = {}  # seconds of the busiest rank by rank

    def add(self, row, steps):
        self.steps += steps
        self.compute += row["compute_seconds"]
        self.wait += row["wait_seconds"]
        self.no_core += row["no_core_seconds"]
        self.slow = self.slow or bool(row.get("slow"))
        self.busiest[row["busiest_rank"]] = self.busiest.get(row["busiest_rank"], 0.0) + row["busiest_seconds"]

    def step(self, value):
        return getattr(self, value) / self.steps


def nodes_of(run):
    """The nodes that the run's records list. The first one has computed longest according to these records."""
    found = {}
    for record in run.nodes:
        for row in record["nodes"]:
            name = name_of(row, record.get("by"))
            found.setdefault(name, Node(name)).add(row, record["steps"])
    return sorted(found.values(), key=lambda node: -node.compute)


def total_of(run):
    return max(record["count"] for record in run.nodes)


def what(run):
    """The kind of the rows: "nodes", or "ranks"."""
    return "ranks" if run.nodes[-1].get("by") == "rank" else "nodes"


def flat(records, value):
    """Positions and values of a line that is level over each record's steps, with a gap where steps have no record."""
    positions, values = [], []
    for record in records:
        if positions and record["step"] - record["steps"] > positions[-1]:
            positions.append(positions[-1])
            values.append(math.nan)
        positions += [record["step"] - record["steps"], record["step"]]
        values += 2 * [value(record) / record["steps"]]
    return positions, values


def draw_value(axes, run, name, shown):
    records = run.nodes
    positions, least = flat(records, lambda record: record[name]["min"])
    most = flat(records, lambda record: record[name]["max"])[1]
    if total_of(run) > len(shown):
        axes.fill_between(positions, least, most, color="#b0b0b0", alpha=0.45, linewidth=0, label=f"all {total_of(run)}")
    for (color, dash), node in zip(LINES, shown):
        listed = [(r, row) for r in records for row in r["nodes"] if name_of(row, r.get("by")) == node.name]
        rows = {id(r): row for r, row in listed}
        axes.plot(
            *flat([r for r, _ in listed], lambda r: rows[id(r)][name]),
            color=color,
            linestyle=dash,
            linewidth=2,
            label=node.name,
        )
    axes.set_ylim(bottom=0, top=1.1 * max(most) or 1)


def draw_run(upper, lower, run):
    found = nodes_of(run)
    shown = found[:MAX_LINES] if total_of(run) <= MAX_LINES else found[: MAX_LINES - 1]
    for axes, name, title in ((upper, "compute_seconds", "computes (s a step)"), (lower, "wait_seconds", "waits (s a step)")):
        draw_value(axes, run, name, shown)
        axes.set_ylabel(title)
    upper.set_title(f"{what(run).capitalize()} of {run.name}" if len(run.name) < 25 else what(run).capitalize())
    for axes in (upper, lower):
        figure.name_axis(axes, "steps")
    upper.set_xlabel("")
    columns = 2 if max(len(node.name) for node in shown) < 16 else 1
    figure.legend_below(lower, upper.get_legend_handles_labels(), columns)


def draw(runs):
    """The picture of the runs, which all have records of nodes. It is narrow, so that its texts stay readable when it is shown small."""
    picture, panels = plt.subplots(2 * len(runs), 1, figsize=(5, 5.4 * len(runs)), squeeze=False, dpi=240)
    for i, run in enumerate(runs):
        draw_run(panels[2 * i, 0], panels[2 * i + 1, 0], run)
    return picture


def main():
    runs, arguments = figure.read_arguments(__doc__, "nodes.png", has_axis=False)
    found = [run for run in runs if run.nodes]
    if not found:
        raise SystemExit(f"{runs[0].name}: has no record of nodes; the file is of an older kzero")
    figure.save(draw(found), arguments.output)


if __name__ == "__main__":
    main()
