#!/usr/bin/env python3
"""Draws the loss of runs, raw and smoothed, with validation and restarts; below it gradient norm and learning rate."""
import statistics

import figure
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter


def draw_loss(axes, run, number, axis, prefix):
    style = figure.Style(number)
    style.draw_smoothed(axes, run.positions(axis), run.column("loss"), statistics.fmean, f"{prefix}training, smoothed")
    if run.validations:
        positions = run.positions(axis, [v["step"] for v in run.validations])
        losses = [v.get("loss") for v in run.validations]
        axes.plot(
            positions, [float("nan") if loss is None else loss for loss in losses], color=style.color, marker=style.marker,
            markersize=5, markerfacecolor="white", linewidth=0, zorder=3, label=f"{prefix}validation",
        )  # fmt: skip
    figure.mark_restarts(axes, run, number, axis)
    skipped = [r["step"] + 1 for r in run.steps if r.get("skipped")]
    if skipped:
        axes.plot(
            run.positions(axis, skipped), [0.98] * len(skipped), "x", color=style.color, markersize=6,
            transform=axes.get_xaxis_transform(), label="skipped step",
        )  # fmt: skip


def main():
    runs, arguments = figure.read_arguments(__doc__, "loss.png")
    runs = figure.with_steps(runs)
    picture, (loss, norm, rate) = plt.subplots(3, 1, figsize=(9, 8.4), sharex=True, gridspec_kw={"height_ratios": [3, 1.1, 1]})
    for number, run in enumerate(runs):
        draw_loss(loss, run, number, arguments.x, f"{run.name}: " if len(runs) > 1 else "")
        style, positions = figure.Style(number), run.positions(arguments.x)
        style.draw_smoothed(norm, positions, run.column("grad_norm"), statistics.median, run.name)
        rate.plot(positions, run.column("lr"), color=style.color, linestyle=style.dash, linewidth=1.8)
    loss.set_title("Loss" + (f" of {runs[0].name}" if len(runs) == 1 else ""))
    loss.set_ylabel("cross-entropy (nats per token)")
    norm.set_ylabel("gradient norm")
    norm.set_yscale("log")
    norm.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    norm.yaxis.set_major_formatter("{x:g}")
    norm.yaxis.set_minor_formatter(NullFormatter())
    rate.set_ylabel("learning rate")
    rate.set_ylim(bottom=0)
    figure.name_axis(rate, arguments.x)
    figure.legend_right(loss)
    figure.save(picture, arguments.output)


if __name__ == "__main__":
    main()
