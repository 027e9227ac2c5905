#!/usr/bin/env python3
"""Draws tokens per second and the utilisation of the peak (MFU) of runs over their steps."""
import statistics

import figure
import matplotlib.pyplot as plt
from matplotlib.ticker import EngFormatter
from records import smoothed


def main():
    runs, output = figure.read_arguments(__doc__, "throughput.png")
    picture, (speed, share) = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
    for run, color in zip(runs, figure.colors() * len(runs)):
        for axes, name, factor in ((speed, "tokens_per_second", 1), (share, "mfu", 100)):
            steps, values = run.column(name)
            values = [factor * value for value in values]
            axes.plot(steps, values, color=color, alpha=0.25, linewidth=0.8)
            # The median, so that a step that waits for a checkpoint does not hide the usual speed.
            median = smoothed(values, statistics.median)
            axes.plot(steps, median, color=color, linewidth=1.8, label=f"{run.name}, median")
            figure.mark_restarts(axes, run, color, f"{run.name}, restart")
    speed.set_title("Throughput" + (f" of {runs[0].name}" if len(runs) == 1 else ""))
    speed.set_ylabel("tokens per second, all ranks")
    speed.yaxis.set_major_formatter(EngFormatter(sep=" "))
    share.set_ylabel("share of the peak (%)")
    share.set_xlabel("step")
    for axes in (speed, share):
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
    figure.legend_right(speed)
    figure.save(picture, output)


if __name__ == "__main__":
    main()
