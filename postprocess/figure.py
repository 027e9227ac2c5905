"""The look that all plots share, and their command line: PLOT RUN.jsonl [...] -o FILE.png."""
import argparse

import matplotlib

matplotlib.use("Agg")  # draws to files; needs no display
import matplotlib.pyplot as plt

import records

plt.rcParams.update(
    {
        "figure.dpi": 120,
        "figure.constrained_layout.use": True,
        "font.size": 11,
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
        "axes.prop_cycle": plt.cycler(
            color=["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
        ),
    }
)


def read_arguments(doc, default_output):
    """The runs that the command line names, and the file to write."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("runs", nargs="+", metavar="RUN.jsonl", help="metrics files")
    parser.add_argument("-o", "--output", default=default_output, help="default: %(default)s")
    arguments = parser.parse_args()
    return [records.read(path) for path in arguments.runs], arguments.output


def colors():
    return plt.rcParams["axes.prop_cycle"].by_key()["color"]


def mark_restarts(axes, run, color, label):
    """A broken line at each step from which the run went on after a stop."""
    for step in run.restarts():
        axes.axvline(step, color=color, linestyle=(0, (4, 3)), linewidth=1, alpha=0.7, label=label)
        label = None


def legend_right(axes):
    """A legend beside the axes, where it covers no curve."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)


def save(figure, output):
    figure.savefig(output)
    print(f"wrote {output}")
