#!/usr/bin/env python3
"""Draws the loss of runs, raw and smoothed, with validation, evaluations and restarts. Below it are gradient norm, learning rate
and, for runs in fp16, the loss scale."""

import math
import statistics

import figure
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

EVALUATION_MARKERS = ["x", "+", "*", "1", "2", "3"]


def draw_points(axes, run, axis, records, **look):
    """The losses in records of finished steps; a loss that is not finite leaves a gap."""
    losses = [math.nan if record.get("loss") is None else record["loss"] for record in records]
    axes.plot(run.positions(axis, [record["step"] for record in records]), losses, linewidth=0, zorder=3, **look)


def draw_loss(axes, run, number, axis, prefix):
    style = figure.Style(number)
    style.draw_smoothed(axes, run.positions(axis), run.column("loss"), statistics.fmean, f"{prefix}training, smoothed")
    if run.validations:
        look = {"marker": style.marker, "markersize": 5, "markerfacecolor": "none"}
        draw_points(axes, run, axis, run.validations, color=style.color, label=f"{prefix}validation", **look)
    for i, (name, found) in enumerate(run.evaluations.items()):
        look = {"marker": EVALUATION_MARKERS[i % len(EVALUATION_MARKERS)], "markersize": 7, "markeredgewidth": 1.5}
        draw_points(axes, run, axis, found, color=style.color, label=f"{prefix}{name}", **look)
    figure.mark_restarts(axes, run, number, axis)
    skipped = [r["step"] + 1 for r in run.steps if r.get("skipped")]
    if skipped:
        axes.plot(
            run.positions(axis, skipped), [0.98] * len(skipped), "x", color=style.color, markersize=6,
            transform=axes.get_xaxis_transform(), label="skipped step",
        )  # fmt: skip


def logarithmic(axes):
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def scales(run):
    """Whether the run had a loss scale, as runs in fp16 do."""
    return any(r.get("loss_scale", 1) != 1 for r in run.steps)


def draw_scale(axes, runs, axis):
    for number, run in enumerate(runs):
        if not scales(run):
            continue
        style = figure.Style(number)
        positions, values = run.positions(axis), run.column("loss_scale")
        axes.plot(positions, values, color=style.color, linestyle=style.dash, linewidth=1.8, drawstyle="steps-mid")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda value, _: f"2^{math.log2(value):g}")
    axes.set_ylabel("loss scale")


def draw(runs, axis):
    """The picture of the runs, which all have steps."""
    has_scale = any(map(scales, runs))
    heights = [3, 1.1, 1] + [0.9] * has_scale
    picture, panels = plt.subplots(
        len(heights), 1, figsize=(9, 8.4 + 1.3 * has_scale), sharex=True, gridspec_kw={"height_ratios": heights}
    )
    loss, norm, rate = panels[:3]
    for number, run in enumerate(runs):
        draw_loss(loss, run, number, axis, figure.prefix_of(run, runs))
        style, positions = figure.Style(number), run.positions(axis)
        style.draw_smoothed(norm, positions, run.column("grad_norm"), statistics.median, run.name)
        rate.plot(positions, run.column("lr"), color=style.color, linestyle=style.dash, linewidth=1.8)
    loss.set_title(figure.title_of("Loss", runs))
    loss.set_ylabel("cross-entropy (nats per token)")
    norm.set_ylabel("gradient norm")
    logarithmic(norm)
    rate.set_ylabel("learning rate")
    rate.set_ylim(bottom=0)
    if has_scale:
        draw_scale(panels[3], runs, axis)
    figure.name_axis(panels[-1], axis)
    figure.add_legend(loss, panels[-1])
    return picture


def main():
    runs, arguments = figure.read_arguments(__doc__, "loss.png")
    figure.save(draw(figure.with_steps(runs), arguments.x), arguments.output)


if __name__ == "__main__":
    main()
