"""The style and the command line of all plots: PLOT RUN.jsonl [...] -o FILE.png."""

import argparse
import io
import math
import sys
from pathlib import Path

import matplotlib_python  # noqa: F401, isort: skip
import matplotlib

matplotlib.use("Agg")  # draws to files; needs no display
import matplotlib.pyplot as plt
import output_file
import records
from matplotlib.ticker import Formatter
from matplotlib.transforms import ScaledTranslation

COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
DASHES = ["-", (0, (6, 2)), (0, (1.5, 1.2)), (0, (7, 2, 1.5, 2)), (0, (3, 1.5)), (0, (5, 1.5, 1, 1.5, 1, 1.5))]
LONGEST_BESIDE = 30  # longest legend entry, in characters, that is placed next to the axes
MARKERS = ["o", "s", "^", "D", "v", "P"]

plt.rcParams.update(
    {
        "figure.dpi": 120,
        "figure.constrained_layout.use": True,
        "font.size": 11,
        "text.parse_math": False,  # names of runs and nodes may contain dollar signs
        "figure.constrained_layout.h_pad": 0.1,
        "figure.constrained_layout.w_pad": 0.1,
        "axes.titlesize": 13,
        "axes.titlepad": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "legend.handlelength": 3,  # room for a dash pattern
    }
)


UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count_text(count, _position=None):
    """100000 as "100k", and counts below 10000 in full."""
    for size, unit in UNITS:
        if abs(count) >= max(size, 10000):
            return f"{count / size:.4g}{unit}"
    return f"{count:g}"


class CountFormatter(Formatter):
    """Ticks of counts such as 100k. All ticks of an axis have the same unit: 0, 5k, 10k."""

    def __call__(self, value, pos=None):
        most = max(map(abs, self.axis.get_view_interval()))
        size, unit = next(((s, u) for s, u in UNITS if most >= max(s, 10000)), (1, ""))
        return f"{value / size:g}{unit}" if value else "0"


class Style:
    """How the run with this number is drawn. Runs differ by hue, and also by dash and marker for readers who cannot tell hues apart."""

    def __init__(self, number):
        self.color = COLORS[number % len(COLORS)]
        turn = number + number // len(COLORS)  # from the seventh run on, hues repeat with another dash
        self.dash = DASHES[turn % len(DASHES)]
        self.marker = MARKERS[turn % len(MARKERS)]

    def draw_smoothed(self, axes, positions, values, average, label):
        axes.plot(positions, values, color=self.color, alpha=0.22, linewidth=0.8)
        axes.plot(
            positions, records.smoothed(values, average), color=self.color, linestyle=self.dash, linewidth=1.8, label=label
        )


def read_arguments(doc, default_output, *, has_axis=True):
    """The runs named on the command line, and its other arguments."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("runs", nargs="+", metavar="RUN.jsonl", help="metrics files, or folders that hold one")
    parser.add_argument("-o", "--output", default=default_output, help="default: %(default)s")
    if has_axis:
        parser.add_argument(
            "--x", choices=["steps", "tokens"], default="steps", help="the horizontal axis; default: %(default)s"
        )
    arguments = parser.parse_args()
    return records.read_all(arguments.runs), arguments


def with_steps(runs):
    found = [run for run in runs if run.steps]
    if not found:
        raise SystemExit(f"{runs[0].name}: has no step to draw")
    return found


def with_key(runs, key):
    """The runs that have steps with this key."""
    return [run for run in runs if any(key in step for step in run.steps)]


def draw_those(doc, default_output, choose, lacking, draw):
    """The command of a plot of those runs that `choose` picks. Ends the program if it picks none."""
    runs, arguments = read_arguments(doc, default_output)
    found = with_steps(runs)
    chosen = choose(found)
    if not chosen:
        raise SystemExit(f"{found[0].name}: {lacking}")
    save(draw(chosen, arguments.x), arguments.output)


def with_record(runs, name, lacking, lacking_all):
    """The runs whose end has the record. Prints on standard error what the others lack, and ends the program if no run has it."""
    found = [run for run in runs if run.end.get(name)]
    if not found:
        raise SystemExit(f"{runs[0].name}: {lacking_all}")
    for run in runs:
        if run not in found:
            print(f"{run.name}: {lacking}: left out", file=sys.stderr)
    return found


def name_axis(axes, axis):
    axes.set_xlabel("step" if axis == "steps" else "tokens")
    axes.xaxis.set_major_formatter(CountFormatter())
    axes.margins(x=0.01)


def mark_restarts(axes, run, number, axis):
    """A tick at the bottom of the axes for each restart. Each run has its own row, so that ticks do not hide curves or each other."""
    if run.restarts:
        axes.plot(
            run.positions(axis, run.restarts), [0.015 + 0.03 * (number % 8)] * len(run.restarts), "|", color=Style(number).color,
            markersize=8, markeredgewidth=1.4, transform=axes.get_xaxis_transform(), label="restart",
        )  # fmt: skip


def legend_right(axes):
    """A legend next to the axes, where it covers no curve."""
    handles = dict(zip(*reversed(axes.get_legend_handles_labels())))  # labels that several runs share appear once
    axes.legend(handles.values(), handles.keys(), loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)


def legend_below(axes, handles, columns):
    """A legend of (handles, labels) below the axes and the name of their axis."""
    below = axes.transAxes + ScaledTranslation(0, -0.6, axes.get_figure().dpi_scale_trans)  # inches
    axes.legend(*handles, loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=below, borderaxespad=0, ncol=columns)


def add_legend(top, bottom):
    """A legend of the upper axes: next to them, or below the lower ones if long names would leave no space for the curves."""
    handles = dict(zip(*reversed(top.get_legend_handles_labels())))
    if max(map(len, handles), default=0) <= LONGEST_BESIDE:
        legend_right(top)
        return
    picture = bottom.get_figure()
    columns = 2 if max(map(len, handles)) <= 40 else 1
    below = bottom.transAxes + ScaledTranslation(0, -0.65, picture.dpi_scale_trans)  # inches, past the axis' name
    bottom.legend(handles.values(), handles.keys(), loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, borderaxespad=0,
                  ncol=columns)  # fmt: skip
    picture.set_figheight(picture.get_figheight() + 0.25 * math.ceil(len(handles) / columns) + 0.1)


def title_of(what, runs):
    """The title of a picture, with the run's name if there is only one run."""
    return what + (f" of {runs[0].name}" if len(runs) == 1 else "")


def prefix_of(run, runs):
    """The prefix of a curve's name if there are several runs."""
    return f"{run.name}: " if len(runs) > 1 else ""


def save(figure, output):
    if Path(output).is_dir():
        raise SystemExit(f"{output}: is a folder; name a file")
    if not Path(output).suffix:
        output += ".png"
    try:
        data = io.BytesIO()
        figure.savefig(data, format=Path(output).suffix[1:])
        output_file.write(output, data.getvalue())
    except OSError as error:
        raise SystemExit(f"{output}: cannot be written: {error.strerror or error}") from None
    except ValueError as error:  # a suffix that names no format
        raise SystemExit(f"{output}: {error}") from None
    print(f"wrote {output}")
