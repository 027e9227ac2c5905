#!/usr/bin/env python3
"""Makes one self-contained HTML page of runs: their table, loss, preferences, a teacher, throughput, experts, goodput, nodes, memory, traffic and decks.

A run is a metrics file (run.metrics) or a folder that contains one. Several runs are drawn over each other. They are named by the keys
of their decks that differ, otherwise by their files. The pictures can also be written as PNG files (--png FOLDER), and the curves for
TensorBoard (--tensorboard FOLDER).
"""

import argparse
import io
from pathlib import Path

import experts
import figure
import goodput
import matplotlib.pyplot as plt
import naming
import output_file
import page
import plot_distillation
import plot_experts
import plot_goodput
import plot_loss
import plot_memory
import plot_nodes
import plot_preferences
import plot_throughput
import plot_traffic
import records
import summary
import tables
import tensorboard_files

MAX_PANELS = 6  # runs whose memory and traffic are drawn


def ended(runs, name):
    return [run for run in runs if run.end.get(name)][:MAX_PANELS]


def with_goodput(runs):
    """(run, its goodput) of those whose files have times of day."""
    found = [(run, goodput.of(run)) for run in runs]
    return [(run, times) for run, times in found if times]


def with_experts(runs):
    return [run for run in runs if experts.of(run)]


def with_nodes(runs):
    return [run for run in runs if run.nodes][:MAX_PANELS]


def pictures(runs, axis):
    """(name, title, explanation, picture) of everything that the runs have a record of."""
    stepping = [run for run in runs if run.steps]
    if stepping:
        yield ("loss", "Loss", "The loss of every step (pale) and its mean over a thirtieth of the run, validation and evaluations as "
               "marks; below it the gradient norm before clipping and the learning rate. Ticks at the foot are restarts.",
               plot_loss.draw(stepping, axis))  # fmt: skip
        if plot_preferences.with_pairs(stepping):
            yield ("preferences", "Preferences", "Rewards of the chosen and the rejected answers of every step (pale), their means over a thirtieth "
                   "of the run, and the share of pairs whose chosen answer has the larger one.",
                   plot_preferences.draw(plot_preferences.with_pairs(stepping), axis))  # fmt: skip
        if plot_distillation.with_teacher(stepping):
            yield ("distillation", "A teacher", "The cross-entropy and the divergence from the teacher of every step (pale), and their means over "
                   "a thirtieth of the run.",
                   plot_distillation.draw(plot_distillation.with_teacher(stepping), axis))  # fmt: skip
        yield ("throughput", "Throughput", "Every step (pale) and the median over a thirtieth of the run. MFU: the share of the "
               "peak that the model's own operations reach.", plot_throughput.draw(stepping, axis))  # fmt: skip
    if with_experts(runs):
        yield ("experts", "Experts", "The choices of a block's busiest expert over the mean of its experts, and the entropy of their shares over "
               "that of equal shares. Both are 1 if the experts have equal shares. The first is model.experts / model.experts_per_token if "
               "every token chooses the same experts. Every step is pale; the lines are means over a thirtieth of the run.",
               plot_experts.draw(stepping, axis))  # fmt: skip
    if with_goodput(runs):
        yield ("goodput", "Goodput", "Where the time went from the first start to the last record of a run, over all its launches. "
               "Pauses after a completed launch do not count.", plot_goodput.draw(with_goodput(runs)))  # fmt: skip
    if with_nodes(runs):
        yield ("nodes", "Nodes", "Time in a step that each node (on a single node, each rank) computed and waited for messages of others, over the "
               "steps. A slow node computes for longer than the others, and waits less.", plot_nodes.draw(with_nodes(runs)))  # fmt: skip
    if ended(runs, "memory"):
        yield ("memory", "Memory", "Memory of the rank that used most: planned before the start, peak of what was allocated, and the resident "
               "memory of the process, which includes code and libraries.", plot_memory.draw(ended(runs, "memory")))  # fmt: skip
    if ended(runs, "traffic"):
        yield ("traffic", "Traffic", "Sent by rank 0 in a step: counted and expected.",
               plot_traffic.draw(ended(runs, "traffic")))  # fmt: skip


def png_of(picture):
    data = io.BytesIO()
    picture.savefig(data, format="png", dpi=150)
    plt.close(picture)
    return data.getvalue()


def write(path, data):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        output_file.write(path, data)
    except OSError as error:
        raise SystemExit(f"{path}: cannot be written: {error.strerror or error}") from None
    print(f"wrote {path}")


def tables_below(name, runs):
    """The content of a section below its picture."""
    if name == "goodput":
        yield page.table(*tables.of_goodput(with_goodput(runs)))
        for run, times in with_goodput(runs):
            if times.interruptions:
                yield page.caption(f"Interruptions of {run.name}")
                yield page.table(*tables.of_interruptions(times))
    if name == "experts":
        for run in with_experts(runs):
            yield page.caption(f"Last steps of {run.name}: {experts.words(run)}.")
    if name == "nodes":
        for run in with_nodes(runs):
            yield page.caption(f"{plot_nodes.what(run).capitalize()} of {run.name}")
            yield page.table(*tables.of_nodes(run))


def description_of(name, title, runs):
    """A description of a picture, for readers who cannot see it."""
    if name == "goodput":
        return f"{title}: " + "; ".join(tables.goodput_text(run, times) for run, times in with_goodput(runs))
    if name == "nodes":
        return f"{title}: " + "; ".join(tables.nodes_text(run) for run in with_nodes(runs))
    found, text = {"loss": ([run for run in runs if run.steps], summary.loss_words), "preferences": (plot_preferences.with_pairs(runs), plot_preferences.words),
                   "distillation": (plot_distillation.with_teacher(runs), plot_distillation.words),
                   "throughput": ([run for run in runs if run.steps], summary.speed_words), "experts": (with_experts(runs), experts.words),
                   "memory": (ended(runs, "memory"), plot_memory.words), "traffic": (ended(runs, "traffic"), plot_traffic.words)}[name]  # fmt: skip
    return f"{title}: " + "; ".join(f"{run.name}: {text(run)}" for run in found)


def sections(runs, drawn):
    names, colors = [run.name for run in runs], [figure.Style(i).color for i in range(len(runs))]
    yield page.section("Runs", "Losses are in nats per token; the training loss is the mean over the last fiftieth of the steps.",
                       page.table(names, summary.rows(runs), colors))  # fmt: skip
    if len(runs) > 1 and summary.deck_rows(runs):
        yield page.section("What differs", "The keys of the resolved decks that are not the same in all runs.",
                           page.table(names, summary.deck_rows(runs), colors))  # fmt: skip
    for name, title, text, png in drawn:
        yield page.section(
            title, text, page.picture(png, description_of(name, title, runs)) + "".join(tables_below(name, runs))
        )
    left_out = [run.name for name in ("memory", "traffic") for run in runs if not run.end.get(name)]
    if left_out:
        text = f"No memory or traffic of {', '.join(dict.fromkeys(left_out))}: a run writes them when it ends, traffic on two or more ranks."
        yield page.section("Left out", text, "")
    decks = "".join(page.folded(run.name, run.start["deck"]) for run in runs if run.start.get("deck"))
    if decks:
        yield page.section("Decks", "Every key as the runs resolved it.", decks)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="metrics files, or folders that hold one")
    parser.add_argument("-o", "--output", default="report.html", help="default: %(default)s")
    parser.add_argument("--title", help="default: the run's name, or how many there are")
    parser.add_argument("--x", choices=["steps", "tokens"], default="steps", help="the horizontal axis; default: %(default)s")
    parser.add_argument("--png", metavar="FOLDER", help="write the pictures there too")
    parser.add_argument("--tensorboard", metavar="FOLDER", help="write event files there, a folder a run")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    runs = records.read_all(arguments.runs)
    naming.name_runs(runs)
    if arguments.tensorboard:
        tensorboard_files.write(runs, arguments.tensorboard)
    drawn = [(name, title, text, png_of(picture)) for name, title, text, picture in pictures(runs, arguments.x)]
    if arguments.png:
        for name, _, _, png in drawn:
            write(Path(arguments.png) / f"{name}.png", png)
    title = arguments.title or (f"Run {runs[0].name}" if len(runs) == 1 else f"{len(runs)} runs")
    sources = ", ".join(str(path) for path in arguments.runs)
    html = page.page(title, f"From {sources}", sections(runs, drawn))
    write(Path(arguments.output), html.encode("utf-8"))


if __name__ == "__main__":
    main()
