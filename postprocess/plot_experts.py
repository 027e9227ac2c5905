#!/usr/bin/env python3
"""Draws how evenly the routers of runs share tokens out: the choices of a block's busiest expert over the mean, and the entropy of all
shares. A single run of few blocks has a line for each block. Otherwise a run has the median block as a line, and all blocks as a band."""

import statistics

import experts
import figure
import matplotlib.pyplot as plt

MAX_LINES = 6  # blocks of a single run that have their own lines


def draw_blocks(axes, run, steps, value, axis):
    for number, block in enumerate(experts.blocks(steps)):
        values = experts.of_block(steps, value, block)
        figure.Style(number).draw_smoothed(axes, run.positions(axis), values, statistics.fmean, f"block {block}")


def draw_band(axes, run, steps, value, style, axis, prefix):
    positions = run.positions(axis)
    least, most = (experts.over_blocks(steps, value, pick) for pick in (min, max))
    label = f"{prefix}all {len(experts.blocks(steps))} blocks"
    axes.fill_between(positions, least, most, color=style.color, alpha=0.15, linewidth=0, label=label)
    median = experts.over_blocks(steps, value, statistics.median)
    style.draw_smoothed(axes, positions, median, statistics.fmean, f"{prefix}median block")


def draw(runs, axis):
    """The picture of those runs that have experts; at least one has. The others leave their colours free, as in other pictures."""
    picture, panels = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
    found = [(number, run, experts.of(run)) for number, run in enumerate(runs)]
    found = [(number, run, steps) for number, run, steps in found if steps]
    drawn = [run for _, run, _ in found]
    for axes, value in zip(panels, (experts.LOAD, experts.ENTROPY)):
        for number, run, steps in found:
            if len(found) == 1 and len(experts.blocks(steps)) <= MAX_LINES:
                draw_blocks(axes, run, steps, value, axis)
            else:
                draw_band(axes, run, steps, value, figure.Style(number), axis, figure.prefix_of(run, drawn))
            if value == experts.LOAD:
                figure.mark_restarts(axes, run, number, axis)
        axes.axhline(1, color="#808080", linewidth=1, zorder=1, label="equal shares")
        axes.autoscale_view(scalex=False)  # space around that line too
    load, entropy = panels
    load.set_title(figure.title_of("Experts", drawn))
    load.set_ylabel("busiest expert over the mean")
    entropy.set_ylabel("entropy over that of\nequal shares")
    figure.name_axis(entropy, axis)
    figure.add_legend(load, entropy)
    return picture


def main():
    runs, arguments = figure.read_arguments(__doc__, "experts.png")
    if not any(map(experts.of, runs)):
        raise SystemExit(f"{runs[0].name}: has no record of experts; its model has none, or the file is of an older kzero")
    figure.save(draw(runs, arguments.x), arguments.output)


if __name__ == "__main__":
    main()
