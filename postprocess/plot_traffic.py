#!/usr/bin/env python3
"""Draws the traffic that a rank sent in a step, counted and expected, by group and purpose. Several runs share one scale."""

import figure
import matplotlib.pyplot as plt
import plot_memory


def expected_bytes(row):
    """The bytes of the expected elements, with the width of those that were counted."""
    width = row["bytes_per_step"] / row["elements_per_step"] if row["elements_per_step"] else 0
    return row["expected_elements_per_step"] * width


def label_of(row):
    return f"{row['group']}: {row['operation']}\nof {row['purpose']}"


def draw_run(axes, run, unit, most):
    unit_name, size = unit
    rows = run.end["traffic"]
    for offset, values, label, color in (
        (-0.2, [expected_bytes(row) for row in rows], "expected", "#b0b0b0"),
        (0.2, [row["bytes_per_step"] for row in rows], "counted", figure.COLORS[0]),
    ):
        bars = axes.barh(
            [i + offset for i in range(len(rows))], [v / size for v in values], height=0.38, color=color, label=label
        )
        axes.bar_label(bars, [plot_memory.text_of(v) for v in values], padding=4, fontsize=9)
    axes.set_yticks(range(len(rows)), [label_of(row) for row in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.18 * most / size)
    axes.set_xlabel(f"sent by rank 0 in a step ({unit_name})")
    axes.set_title(f"Traffic of {run.name}")
    figure.legend_right(axes)


def words(run):
    """The picture of a run in words."""
    return ", ".join(f"{row['operation']} of {row['purpose']} over {row['group']}: {plot_memory.text_of(row['bytes_per_step'])} a step, "
                     f"{plot_memory.text_of(expected_bytes(row))} expected" for row in run.end["traffic"])  # fmt: skip


def draw(runs):
    """The picture of the runs, which all have a record of their traffic."""
    most = max(max(row["bytes_per_step"], expected_bytes(row)) for run in runs for row in run.end["traffic"]) or 1
    heights = [1.2 + 0.8 * len(run.end["traffic"]) for run in runs]
    picture, grid = plt.subplots(
        len(runs), 1, figsize=(9, sum(heights) + 0.6), squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for axes, run in zip(grid[:, 0], runs):
        draw_run(axes, run, plot_memory.unit_of(most), most)
    return picture


def main():
    runs, arguments = figure.read_arguments(__doc__, "traffic.png", has_axis=False)
    lacking = "has no record of traffic"
    sending = figure.with_record(runs, "traffic", lacking, f"{lacking}: one rank, or a run that has not ended in order")
    figure.save(draw(sending), arguments.output)


if __name__ == "__main__":
    main()
