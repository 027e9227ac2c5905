#!/usr/bin/env python3
"""Draws what runs learned from pairs of answers: the rewards of chosen and of rejected ones, and the share of pairs that the chosen
one wins."""

import statistics

import figure
import matplotlib.pyplot as plt


def with_pairs(runs):
    """The runs that have steps with pairs (preference.loss)."""
    return figure.with_key(runs, "pairs")


def draw(runs, axis):
    """The picture of the runs, which all have pairs."""
    picture, (reward, share) = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
    for number, run in enumerate(runs):
        prefix, positions = figure.prefix_of(run, runs), run.positions(axis)
        # Two colours for each run: of the chosen and of the rejected answers.
        for offset, name in enumerate(("chosen", "rejected")):
            style = figure.Style(2 * number + offset)
            style.draw_smoothed(reward, positions, run.column(f"{name}_reward"), statistics.fmean, f"{prefix}{name}")
        wins = [100 * value for value in run.column("accuracy")]
        figure.Style(2 * number).draw_smoothed(share, positions, wins, statistics.fmean, f"{prefix}accuracy")
        figure.mark_restarts(reward, run, number, axis)
    reward.set_title(figure.title_of("Preferences", runs))
    reward.set_ylabel("reward")
    share.set_ylabel("chosen wins (% of pairs)")
    share.set_ylim(0, 100)
    figure.name_axis(share, axis)
    figure.add_legend(reward, share)
    return picture


def words(run):
    """What the picture shows of a run, for readers who cannot see it."""
    last = [step for step in run.steps if "pairs" in step][-1]
    chosen, rejected, wins = (last.get(name) for name in ("chosen_reward", "rejected_reward", "accuracy"))
    if None in (chosen, rejected, wins):
        return "no rewards in the last step"
    return f"rewards {chosen:.4g} and {rejected:.4g} in the last step, in which the chosen answer wins {100 * wins:.0f} % of the pairs"


def main():
    lacking = "has no steps with pairs, as a run with preference.loss has"
    figure.draw_those(__doc__, "preferences.png", with_pairs, lacking, draw)


if __name__ == "__main__":
    main()
