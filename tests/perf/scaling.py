#!/usr/bin/env python3
"""The runs of figures 2, 3 and 4 of arXiv 1910.02054 as `kzero plan` predicts them, compared with what the paper printed.

    python3 tests/perf/scaling.py [--kzero build/release/kzero] [--rates input/rates/dgx2_v100.toml] [-o docs/scaling.png]
    python3 tests/perf/scaling.py --fit [--leave-out 3]

The first draws the picture and prints the tables of tests/perf/scaling_tables.md. The second searches rates near those of the
file at which the largest error of the ZeRO runs is smallest, of all three figures or of two.
"""

import argparse
import random
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from planned_runs import ROOT, error, plans, settings

RATES = ROOT / "input/rates/dgx2_v100.toml"


@dataclass(frozen=True)
class Run:
    """A run: its settings from the paper's tables 5, 6 and 10, its TFLOP/s per GPU read off the figure."""

    figure: int
    model: str
    gpus: int
    tensor: int
    batch: int  # of a tensor group
    layers: int
    hidden: int
    heads: int
    printed: float
    zero: bool = True

    def settings(self):
        deck = {2: f"figure2_{self.model.lower()}", 3: f"figure3_{self.gpus}", 4: f"figure4_{self.model.lower()}"}[self.figure]
        if self.figure == 4 and not self.zero:
            deck = "figure4_1.5b"  # with other layers
        overrides = {
            "model.layers": self.layers,
            "model.hidden": self.hidden,
            "model.heads": self.heads,
            "grid.tensor": self.tensor,
            "train.global_batch": self.batch * self.gpus // self.tensor,
            "train.micro_batch": self.batch,
            "zero.reduction": "library",
            "zero.overlap": "off",
        }
        if not self.zero:
            overrides |= {"zero.stage": 0, "recompute.partition": "false"}
        return [f"input/paper/{deck}.toml", *settings(overrides), "--ranks", str(self.gpus)]

    def row(self):
        return f"{self.model}, {self.layers} × {self.hidden} | {self.gpus} | {self.tensor} | {self.batch}"


def figure2():
    models = (
        ("1.5B", 48, 1600),
        ("8B", 72, 3072),
        ("40B", 88, 6144),
        ("60B", 132, 6144),
        ("80B", 100, 8192),
        ("100B", 125, 8192),
        ("120B", 150, 8192),
        ("140B", 175, 8192),
        ("170B", 212, 8192),
    )
    zero = (
        (1, 24, 16, 30.3),
        (4, 64, 24, 36.9),
        (4, 12, 32, 35.9),
        (16, 64, 32, 36.5),
        (16, 32, 64, 37.6),
        (16, 32, 64, 38.7),
        (16, 24, 64, 28.1),
        (16, 16, 64, 26.9),
        (16, 12, 64, 20.9),
    )
    baseline = (
        (400, 2, 16, 16, 26.4),
        (400, 8, 8, 24, 23.1),
        (384, 32, 4, 64, 4.9),
        (384, 64, 4, 64, 6.3),
        (384, 128, 4, 128, 5.2),
        (384, 128, 2, 128, 3.8),
        (384, 128, 2, 128, 3.8),
        (384, 128, 2, 128, 3.8),
        (256, 256, 2, 256, 2.2),
    )
    for (name, layers, hidden), (tensor, batch, heads, printed) in zip(models, zero):
        yield Run(2, name, 400, tensor, batch, layers, hidden, heads, printed)
    for (name, layers, hidden), (gpus, tensor, batch, heads, printed) in zip(models, baseline):
        yield Run(2, name, gpus, tensor, batch, layers, hidden, heads, printed, zero=False)


def figure3():
    for gpus, batch, printed in ((64, 16, 25.7), (128, 48, 37.6), (256, 48, 39.1), (400, 64, 36.6)):
        yield Run(3, "60B", gpus, 16, batch, 75, 8192, 32, printed)


def figure4():
    for name, layers, hidden, heads, batch, printed in (
        ("1.5B", 34, 1920, 16, 24, 40.3),
        ("2.5B", 54, 1920, 16, 24, 41.9),
        ("4B", 64, 2304, 24, 16, 43.5),
        ("6B", 52, 3072, 24, 12, 46.9),
        ("8B", 72, 3072, 24, 8, 46.9),
        ("10B", 50, 4096, 32, 6, 41.1),
        ("11B", 54, 4096, 32, 4, 35.6),
        ("12B", 58, 4096, 32, 4, 32.8),
        ("13B", 62, 4096, 32, 2, 21.1),
    ):
        yield Run(4, name, 128, 1, batch, layers, hidden, heads, printed)
    yield Run(4, "1.16B", 128, 1, 8, 24, 1920, 16, 39.3, zero=False)
    yield Run(4, "1.38B", 128, 1, 1, 40, 1536, 16, 18.1, zero=False)


RUNS = (*figure2(), *figure3(), *figure4())


def predict(kzero, runs=RUNS, rates=RATES):
    """TFLOP/s per GPU of each run, those of recomputation included."""
    return [plan["tflops_per_rank"] for plan in plans(kzero, runs, lambda run: rates)]


def table(runs, predicted):
    """The rows of a table of tests/perf/scaling_tables.md."""
    lines = ["| model, layers × hidden | GPUs | MP | batch | printed | predicted | error |", "|---|---|---|---|---|---|---|"]
    for run, value in zip(runs, predicted):
        lines.append(f"| {run.row()} | {run.printed:.1f} | {value:.1f} | {100 * error(run, value):+.0f} % |")
    return "\n".join(lines)


def select(figure, zero=True):
    return [number for number, run in enumerate(RUNS) if run.figure == figure and run.zero == zero]


def tables(predicted):
    """All tables with their titles, as tests/perf/scaling_tables.md has them."""
    names = {
        (2, True): "Figure 2, ZeRO-100B",
        (3, True): "Figure 3, ZeRO-100B",
        (4, True): "Figure 4, ZeRO-100B without MP",
        (2, False): "Figure 2, Megatron alone",
        (4, False): "Figure 4, data parallelism alone",
    }
    return "\n\n".join(
        f"{name}:\n\n" + table([RUNS[i] for i in select(*which)], [predicted[i] for i in select(*which)])
        for which, name in names.items()
    )


def draw(predicted, output):
    sys.path.insert(0, str(ROOT / "postprocess"))
    import figure
    import matplotlib.pyplot as plt

    picture, all_axes = plt.subplots(1, 3, figsize=(15, 4.6), width_ratios=(9, 5, 9), sharey=True)
    for number, axes in zip((2, 3, 4), all_axes):
        for zero, name, color in ((True, "ZeRO-100B", figure.COLORS[0]), (False, "without ZeRO", figure.COLORS[1])):
            chosen = select(number, zero)
            if not chosen:
                continue
            labels = [f"{RUNS[i].gpus}" if number == 3 else RUNS[i].model for i in chosen]
            if zero:
                axes.fill_between(
                    labels,
                    *([factor * RUNS[i].printed for i in chosen] for factor in (0.85, 1.15)),
                    color=color,
                    alpha=0.12,
                    label="printed ± 15 %",
                )
            line = "-" if zero or number == 2 else ""
            axes.plot(
                labels, [RUNS[i].printed for i in chosen], color=color, marker="o", linestyle=line, label=f"{name}, printed"
            )
            axes.plot(
                labels,
                [predicted[i] for i in chosen],
                color=color,
                marker="D",
                markerfacecolor="white",
                linestyle=(0, (4, 2)) if line else "",
                label=f"{name}, predicted",
            )
        axes.set_xlabel("GPUs" if number == 3 else "parameters")
        axes.set_ylim(0, 55)
    all_axes[0].set_ylabel("TFLOP/s per GPU")
    for axes, title in zip(
        all_axes, ("Figure 2: 400 GPUs (baseline 256 to 400)", "Figure 3: 60B", "Figure 4: 128 GPUs, no tensor ranks")
    ):
        axes.set_title(title)
    all_axes[0].legend(loc="upper right", ncols=2, fontsize=9)
    figure.save(picture, output)


def rates_text(values):
    """A rates file of these values, and of those that the paper and the hardware give."""
    shares = "\n".join(f"{width} = {share:.4f}" for width, share in values["attained"].items())
    megabytes = {name: f'"{round(values[name])}MB"' for name in ("within", "rank", "node")}
    return (
        f'[rank]\ntflops = 125\nmemory_bandwidth = "800GB"\n[attained]\n{shares}\n[node]\nranks = 16\nbandwidth = {megabytes["within"]}\n'
        f'[network]\nrank_bandwidth = {megabytes["rank"]}\nnode_bandwidth = {megabytes["node"]}\n'
    )


def values_of(rates):
    """The free values of a rates file."""
    machine = tomllib.loads(Path(rates).read_text())
    megabytes = {"MB": 1, "GB": 1000}
    size = lambda text: float(text[:-2]) * megabytes[text[-2:]]
    return {
        "attained": machine["attained"],
        "within": size(machine["node"]["bandwidth"]),
        "rank": size(machine["network"]["rank_bandwidth"]),
        "node": size(machine["network"]["node_bandwidth"]),
    }


def fit(kzero, rates, leave_out, steps=500):
    """Searches with random steps from the rates of the file; prints the best."""
    runs = [run for run in RUNS if run.zero and run.figure != leave_out]
    others = [run for run in RUNS if run.zero and run.figure == leave_out]
    file = Path(tempfile.mkdtemp()) / "rates.toml"

    def errors(values, of):
        file.write_text(rates_text(values))
        return [error(run, predicted) for run, predicted in zip(of, predict(kzero, of, file))]

    def largest(values):  # nearly; a sum of powers has no edges
        return sum(abs(e) ** 24 for e in errors(values, runs)) ** (1 / 24)

    best, width, chance = values_of(rates), 0.05, random.Random(1)
    score = largest(best)
    for _ in range(steps):
        other = lambda value: value * chance.lognormvariate(0, width)
        trial = {
            "attained": {w: min(1, other(share)) for w, share in best["attained"].items()},
            **{name: other(best[name]) for name in ("within", "rank", "node")},
        }
        found = largest(trial)
        width = max(1e-4, width * (1.5 if found < score else 0.93))
        if found < score:
            best, score = trial, found
    print(rates_text(best))
    print(f"# errors of the runs: at most {max(map(abs, errors(best, runs))):.3f}")
    if others:
        print("# of the others: " + ", ".join(f"{e:+.3f}" for e in errors(best, others)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", default=ROOT / "build/release/kzero")
    parser.add_argument("--rates", default=RATES)
    parser.add_argument("-o", "--output", default="scaling.png")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--leave-out", type=int, choices=(2, 3, 4), help="a figure whose runs the fit does not see")
    arguments = parser.parse_args()
    kzero, rates = Path(arguments.kzero).resolve(), Path(arguments.rates).resolve()
    if arguments.fit:
        fit(kzero, rates, arguments.leave_out)
        return
    predicted = predict(kzero, rates=rates)
    print(tables(predicted))
    draw(predicted, arguments.output)


if __name__ == "__main__":
    main()
