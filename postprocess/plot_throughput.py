#!/usr/bin/env python3
"""Draws tokens per second and the utilisation of the peak (MFU) of runs."""
import statistics

import figure
import matplotlib.pyplot as plt
from matplotlib.ticker import EngFormatter


def main():
    runs, arguments = figure.read_arguments(__doc__, "throughput.png")
    runs = figure.with_steps(runs)
    picture, (speed, share) = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
    for number, run in enumerate(runs):
        for axes, name, factor in ((speed, "tokens_per_second", 1), (share, "mfu", 100)):
            values = [factor * value for value in run.column(name)]
            # The median, so that a step that waits for a checkpoint does not hide the usual speed.
            prefix = f"{run.name}: " if len(runs) > 1 else ""
            figure.Style(number).draw_smoothed(axes, run.positions(arguments.x), values, statistics.median, f"{prefix}median")
        figure.mark_restarts(speed, run, number, arguments.x)
    speed.set_title("Throughput" + (f" of {runs[0].name}" if len(runs) == 1 else ""))
    speed.set_ylabel("tokens/s, all ranks")
    speed.yaxis.set_major_formatter(EngFormatter(sep=" "))
    share.set_ylabel("MFU (% of the peak)")
    for axes in (speed, share):
        axes.set_ylim(bottom=0)
    figure.name_axis(share, arguments.x)
    figure.legend_right(speed)
    figure.save(picture, arguments.output)


if __name__ == "__main__":
    main()
