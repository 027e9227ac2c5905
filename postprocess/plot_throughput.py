#!/usr/bin/env python3
"""Draws tokens per second and the utilisation of the peak (MFU) of runs."""

import statistics

import figure
import matplotlib.pyplot as plt


def draw(runs, axis):
    """The picture of the runs, which all have steps."""
    picture, (speed, share) = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
    for number, run in enumerate(runs):
        for axes, name, factor in ((speed, "tokens_per_second", 1), (share, "mfu", 100)):
            values = [factor * value for value in run.column(name)]
            # The median, so that a step that waits for a checkpoint does not hide the usual speed.
            label = f"{figure.prefix_of(run, runs)}median"
            figure.Style(number).draw_smoothed(axes, run.positions(axis), values, statistics.median, label)
        figure.mark_restarts(speed, run, number, axis)
    speed.set_title(figure.title_of("Throughput", runs))
    speed.set_ylabel("tokens/s, all ranks")
    speed.yaxis.set_major_formatter(figure.CountFormatter())
    share.set_ylabel("MFU (% of the peak)")
    for axes in (speed, share):
        axes.set_ylim(bottom=0)
    figure.name_axis(share, axis)
    figure.add_legend(speed, share)
    return picture


def main():
    runs, arguments = figure.read_arguments(__doc__, "throughput.png")
    figure.save(draw(figure.with_steps(runs), arguments.x), arguments.output)


if __name__ == "__main__":
    main()
