#!/usr/bin/env python3
"""Draws what runs learned from a teacher: the cross-entropy, and the divergence from the teacher (KL)."""

import statistics

import figure
import matplotlib.pyplot as plt


def with_teacher(runs):
    """The runs that have steps with a teacher (distill.file)."""
    return figure.with_key(runs, "kl")


def draw(runs, axis):
    """The picture of the runs, which all have a teacher."""
    picture, (entropy, divergence) = plt.subplots(2, 1, figsize=(9, 6), sharex=True)
    for number, run in enumerate(runs):
        prefix, positions = figure.prefix_of(run, runs), run.positions(axis)
        style = figure.Style(number)
        style.draw_smoothed(entropy, positions, run.column("cross_entropy"), statistics.fmean, f"{prefix}cross-entropy")
        style.draw_smoothed(divergence, positions, run.column("kl"), statistics.fmean, f"{prefix}KL")
        figure.mark_restarts(entropy, run, number, axis)
    entropy.set_title(figure.title_of("A teacher", runs))
    entropy.set_ylabel("cross-entropy (nats)")
    divergence.set_ylabel("KL from the teacher (nats)")
    figure.name_axis(divergence, axis)
    figure.add_legend(entropy, divergence)
    return picture


def words(run):
    """What the picture shows of a run, for readers who cannot see it."""
    last = [step for step in run.steps if "kl" in step][-1]
    entropy, divergence = (last.get(name) for name in ("cross_entropy", "kl"))
    if None in (entropy, divergence):
        return "no divergence in the last step"
    return f"cross-entropy {entropy:.4g} and KL {divergence:.4g} in the last step"


def main():
    lacking = "has no steps beside a teacher, as a run with distill.file has"
    figure.draw_those(__doc__, "distillation.png", with_teacher, lacking, draw)


if __name__ == "__main__":
    main()
