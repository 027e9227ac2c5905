#!/usr/bin/env python3
"""Draws planned and peak memory of the fullest rank by category, and its resident memory. Several runs share one scale."""

import figure
import matplotlib.pyplot as plt

UNITS = [("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)]


def total(row, key):
    return sum(category[key] for category in row["categories"].values())


def fullest_rank(run):
    return max(run.end["memory"], key=lambda row: total(row, "peak_bytes"))


def unit_of(byte_count):
    return next(u for u in UNITS if byte_count >= u[1] or u[1] == 1)


def text_of(byte_count):
    unit, size = unit_of(byte_count)
    return f"{byte_count / size:.3g} {unit}"


def max_bytes(row):
    return max(row["resident_peak_bytes"], total(row, "peak_bytes"), total(row, "planned_bytes"))


def draw_run(axes, name, row, unit, most):
    categories = {n: c for n, c in row["categories"].items() if c["planned_bytes"] or c["peak_bytes"]}
    categories["sum"] = {key: total(row, key) for key in ("planned_bytes", "peak_bytes")}
    unit_name, size = unit
    for offset, key, label, color in (
        (-0.2, "planned_bytes", "planned", "#b0b0b0"),
        (0.2, "peak_bytes", "peak", figure.COLORS[0]),
    ):
        values = [c[key] / size for c in categories.values()]
        positions = [i + offset for i in range(len(categories))]
        bars = axes.barh(positions, values, height=0.38, color=color, label=label)
        axes.bar_label(bars, [text_of(c[key]) for c in categories.values()], padding=4, fontsize=9)
    resident = row["resident_peak_bytes"]
    label = f"resident, {text_of(resident)}"
    axes.axvline(resident / size, color=figure.COLORS[1], linestyle="--", linewidth=1.6, label=label)
    axes.set_yticks(range(len(categories)), list(categories))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.18 * most / size)
    axes.set_xlabel(f"memory of rank {row['rank']} ({unit_name})")
    axes.set_title(f"Memory of {name}")
    figure.legend_right(axes)


def words(run):
    """The picture of a run in words."""
    row = fullest_rank(run)
    planned, peak, resident = total(row, "planned_bytes"), total(row, "peak_bytes"), row["resident_peak_bytes"]
    return f"rank {row['rank']}, {text_of(planned)} planned, {text_of(peak)} at the peak, {text_of(resident)} resident"


def draw(runs):
    """The picture of the runs, which all have a record of their memory."""
    rows = [(run.name, fullest_rank(run)) for run in runs]
    most = max(max_bytes(row) for _, row in rows)
    picture, grid = plt.subplots(len(rows), 1, figsize=(9, 4.6 * len(rows)), squeeze=False)
    for axes, (name, row) in zip(grid[:, 0], rows):
        draw_run(axes, name, row, unit_of(most), most)
    return picture


def main():
    runs, arguments = figure.read_arguments(__doc__, "memory.png", has_axis=False)
    ended = figure.with_record(
        runs, "memory", "has not ended in order", "the run has not ended in order: no record of its memory"
    )
    figure.save(draw(ended), arguments.output)


if __name__ == "__main__":
    main()
