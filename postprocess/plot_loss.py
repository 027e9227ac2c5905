#!/usr/bin/env python3
"""Draws the loss of runs over their steps, raw and smoothed, with validation and restarts."""
import figure
import matplotlib.pyplot as plt
from records import smoothed


def draw_run(axes, run, color, prefix):
    steps, losses = run.column("loss")
    axes.plot(steps, losses, color=color, alpha=0.25, linewidth=0.8)
    label = f"{prefix}training, smoothed"
    axes.plot(steps, smoothed(losses), color=color, linewidth=1.8, label=label)
    if run.validations:
        axes.plot(
            [v["step"] for v in run.validations],
            [v["loss"] for v in run.validations],
            color=color, marker="o", markersize=5, markerfacecolor="white", linewidth=0, zorder=3,
            label=f"{prefix}validation",
        )  # fmt: skip
    figure.mark_restarts(axes, run, color, f"{prefix}restart")
    skipped = [r["step"] + 1 for r in run.steps if r["skipped"]]
    if skipped:
        axes.plot(
            skipped, [0.02] * len(skipped), "v", color=color, markeredgecolor="black", markersize=6,
            transform=axes.get_xaxis_transform(), label=f"{prefix}skipped step",
        )  # fmt: skip


def main():
    runs, output = figure.read_arguments(__doc__, "loss.png")
    picture, axes = plt.subplots(figsize=(9, 4.8))
    for run, color in zip(runs, figure.colors() * len(runs)):
        draw_run(axes, run, color, f"{run.name}: " if len(runs) > 1 else "")
    axes.set_title("Loss" + (f" of {runs[0].name}" if len(runs) == 1 else ""))
    axes.set_xlabel("step")
    axes.set_ylabel("cross-entropy (nats per token)")
    axes.margins(x=0.01)
    figure.legend_right(axes)
    figure.save(picture, output)


if __name__ == "__main__":
    main()
