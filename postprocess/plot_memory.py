#!/usr/bin/env python3
"""Draws planned and peak memory of the fullest rank by category, and its resident memory."""
import figure
import matplotlib.pyplot as plt

UNITS = [("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)]


def total(row, key):
    return sum(category[key] for category in row["categories"].values())


def fullest_rank(run):
    if not run.end.get("memory"):
        raise SystemExit(f"{run.name}: the run has not ended in order: no record of its memory")
    return max(run.end["memory"], key=lambda row: total(row, "peak_bytes"))


def text_of(byte_count):
    unit, size = next(u for u in UNITS if byte_count >= u[1] or u[1] == 1)
    return f"{byte_count / size:.3g} {unit}"


def draw_run(axes, run):
    row = fullest_rank(run)
    held = {n: c for n, c in row["categories"].items() if c["planned_bytes"] or c["peak_bytes"]}
    held["sum"] = {key: total(row, key) for key in ("planned_bytes", "peak_bytes")}
    unit, size = next(u for u in UNITS if row["resident_peak_bytes"] >= u[1])
    colors = figure.colors()
    for offset, key, label, color in (
        (-0.2, "planned_bytes", "planned", "#b0b0b0"),
        (0.2, "peak_bytes", "peak", colors[0]),
    ):
        values = [c[key] / size for c in held.values()]
        places = [i + offset for i in range(len(held))]
        bars = axes.barh(places, values, height=0.38, color=color, label=label)
        axes.bar_label(bars, [text_of(c[key]) for c in held.values()], padding=4, fontsize=9)
    resident = row["resident_peak_bytes"]
    label = f"resident, {text_of(resident)}"
    axes.axvline(resident / size, color=colors[1], linewidth=1.6, label=label)
    axes.set_yticks(range(len(held)), list(held))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.18 * max(resident, *(c["peak_bytes"] for c in held.values())) / size)
    axes.set_xlabel(f"memory of rank {row['rank']} ({unit})")
    axes.set_title(f"Memory of {run.name}")
    figure.legend_right(axes)


def main():
    runs, output = figure.read_arguments(__doc__, "memory.png")
    picture, grid = plt.subplots(len(runs), 1, figsize=(9, 4.6 * len(runs)), squeeze=False)
    for axes, run in zip(grid[:, 0], runs):
        draw_run(axes, run)
    figure.save(picture, output)


if __name__ == "__main__":
    main()
