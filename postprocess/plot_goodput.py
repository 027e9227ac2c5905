#!/usr/bin/env python3
"""Draws where the time of runs went, over all their launches: productive steps and everything else."""

import figure
import goodput
import matplotlib.pyplot as plt

COLORS = {"productive": "#0072b2", "recomputed": "#d55e00", "evaluation": "#56b4e9", "checkpoint": "#009e73", "start": "#cc79a7",
          "other": "#b0b0b0", "lost": "#e69f00"}  # fmt: skip
DARK = ("productive", "recomputed", "checkpoint")  # white text is readable on these
MIN_LABELLED = 0.06  # smallest share with space for its number


def draw(runs):
    """The picture of (run, its goodput). It is narrow, so that its texts stay readable when it is shown small."""
    picture, axes = plt.subplots(figsize=(5, 2.7 + 0.55 * len(runs)), dpi=240)
    for row, (_, found) in enumerate(runs):
        left = 0.0
        for part in goodput.PARTS:
            share = 100 * max(0.0, found.share(part))
            axes.barh(
                row,
                share,
                left=left,
                color=COLORS[part],
                height=0.62,
                edgecolor="white",
                linewidth=0.6,
                label=part if row == 0 else None,
            )
            if share >= 100 * MIN_LABELLED:
                color = "white" if part in DARK else "black"
                axes.text(left + share / 2, row, f"{share:.0f} %", ha="center", va="center", color=color)
            left += share
    names = [f"{run.name[:13]}…" if len(run.name) > 14 else run.name for run, _ in runs]
    axes.set_yticks(range(len(runs)), names if len(runs) > 1 else [""])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the wall time (%)")
    axes.grid(axis="y", visible=False)
    axes.set_title(figure.title_of("Goodput", [run for run, _ in runs]) if len(runs[0][0].name) < 25 else "Goodput")
    figure.legend_below(axes, axes.get_legend_handles_labels(), 2)
    return picture


def main():
    runs, arguments = figure.read_arguments(__doc__, "goodput.png", has_axis=False)
    found = [(run, goodput.of(run)) for run in runs]
    found = [(run, times) for run, times in found if times]
    if not found:
        raise SystemExit(f"{runs[0].name}: has no times of day; the file is of an older kzero")
    figure.save(draw(found), arguments.output)


if __name__ == "__main__":
    main()
