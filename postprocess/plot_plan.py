#!/usr/bin/env python3
"""Draws the output of `kzero plan --json`: memory by ZeRO stage and over the number of ranks, or tokens/s over the ranks.

    kzero plan --parameters 7.5e9 --ranks 64 --json | python3 postprocess/plot_plan.py - -o figure1.png

Several files are combined, with one panel for each number of parameters. One number of ranks gives bars by stage (Figure 1 of the
ZeRO paper). Several numbers give curves over ranks and their table (its Table 1). Values that fit into --limit are marked.
"""

import argparse
import json
import re
import sys

import figure
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, NullLocator

STAGES = ["stage 0", "stage 1 (P_os)", "stage 2 (P_os+g)", "stage 3 (P_os+g+p)"]  # with the paper's names
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
CATEGORY_COLORS = figure.COLORS + ["#7f7f7f", "#f0e442", "#332288"]


def size_of(text):
    found = re.fullmatch(r"([\d.]+(?:e\d+)?) *([kKMGT]?i?B)?", text)
    if not found or (found[2] or "B") not in UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 32GB or 80GiB")
    return float(found[1]) * UNITS[found[2] or "B"]


def read(path):
    """The plans of a file, or of standard input if `path` is "-"."""
    try:
        plans = json.load(sys.stdin if path == "-" else open(path, encoding="utf-8"))
    except OSError as error:
        raise SystemExit(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SystemExit(f"{path}: is not the output of kzero plan --json: {error}") from None
    if isinstance(plans, list):  # numbers of ranks that the deck does not allow have no plan
        plans = [plan for plan in plans if not (isinstance(plan, dict) and "refused" in plan)]
    needed = {"ranks", "stage", "parameters", "memory", "total_bytes"}
    if not isinstance(plans, list) or not plans or not all(isinstance(p, dict) and needed <= p.keys() for p in plans):
        raise SystemExit(f"{path}: is not the output of kzero plan --json: a list of plans with {', '.join(sorted(needed))}")
    return plans


def count_text(number):
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.4g}{unit}"
    return str(number)


def bytes_text(number):
    """Three digits; sizes are decimal, as in the paper and in the specifications of devices."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{number / size:.3g} {unit}" if number < 1000 * size else f"{number / size:.0f} {unit}"
    return f"{number} B"


def ranks_text(number):
    return f"{number} rank" + "s" * (number != 1)


def gigabytes(number):
    """Three digits, halves rounded up, as in the paper's table."""
    value = number / 1e9 * (1 + 1e-12)
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def categories_of(plans):
    """The categories that are not empty: model states first, then the others from the largest."""
    names = dict.fromkeys(name for plan in plans for name in plan["memory"])
    return [name for name in names if any(plan["memory"].get(name) for plan in plans)]


def draw_bars(axes, plans, labels, limit):
    """One bar per plan, with its categories one after the other."""
    scale, unit = scale_of(max(plan["total_bytes"] for plan in plans))
    begins = [0] * len(plans)
    for number, name in enumerate(categories_of(plans)):
        values = [plan["memory"].get(name, 0) / scale for plan in plans]
        axes.barh(
            range(len(plans)),
            values,
            left=begins,
            height=0.62,
            color=CATEGORY_COLORS[number % len(CATEGORY_COLORS)],
            label=name,
        )
        begins = [begin + value for begin, value in zip(begins, values)]
    for position, (end, plan) in enumerate(zip(begins, plans)):
        axes.annotate(bytes_text(plan["total_bytes"]), (end, position), xytext=(5, 0), textcoords="offset points", va="center", fontsize=10,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
    axes.set_yticks(range(len(plans)), labels)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"memory of a rank ({unit})")
    axes.set_xlim(0, 1.16 * max(begins))
    if limit and limit / scale < 1.16 * max(begins):
        axes.axvline(limit / scale, color="#444444", linestyle="--", linewidth=1.2, label=f"limit, {bytes_text(limit)}")
    figure.legend_right(axes)


def scale_of(most):
    return next(((s, u) for s, u in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if most >= s), (1e3, "kB"))


def draw_curves(axes, plans, limit):
    """One curve per stage over the numbers of ranks, both axes logarithmic."""
    scale, unit = 1e9, "GB"
    ranks = sorted({plan["ranks"] for plan in plans})
    for stage in sorted({plan["stage"] for plan in plans}):
        line = sorted((plan["ranks"], plan["total_bytes"] / scale) for plan in plans if plan["stage"] == stage)
        style = figure.Style(stage)
        axes.plot(
            *zip(*line),
            color=style.color,
            linestyle=style.dash,
            marker=style.marker,
            markersize=5,
            linewidth=1.8,
            label=STAGES[stage],
        )
    if limit:
        axes.axhline(limit / scale, color="#444444", linestyle="--", linewidth=1.2, label=f"limit, {bytes_text(limit)}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(ranks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(figure.count_text)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("ranks")
    axes.set_ylabel(f"memory of a rank ({unit})")


def draw_table(axes, plans, limit):
    """The curves' values in GB; bold where they fit."""
    stages, ranks = sorted({plan["stage"] for plan in plans}), sorted({plan["ranks"] for plan in plans})
    values = {(plan["ranks"], plan["stage"]): plan["total_bytes"] for plan in plans}
    cells = [[gigabytes(values[r, s]) if (r, s) in values else "" for s in stages] for r in ranks]
    axes.axis("off")
    table = axes.table(cells, rowLabels=[f"{r} " for r in ranks], colLabels=[f"stage {s}" for s in stages], loc="upper center",
                       cellLoc="right", edges="horizontal")  # fmt: skip
    table.auto_set_font_size(False)
    table.set_fontsize(10)
    table.scale(1, 1.35)
    for (row, column), cell in table.get_celld().items():
        cell.set_edgecolor("#cccccc")
        if limit and row > 0 and column >= 0 and values.get((ranks[row - 1], stages[column]), limit + 1) <= limit:
            cell.get_text().set_fontweight("bold")
            cell.get_text().set_color(figure.COLORS[0])


def draw_over_ranks(groups, limit):
    rows = max(len({plan["ranks"] for plan in plans}) for plans in groups.values())
    width = max(4.2 * len(groups), 7)
    picture, grid = plt.subplots(2, len(groups), figsize=(width + 1.6, 4 + 0.3 * rows), squeeze=False,
                                 gridspec_kw={"height_ratios": [3.6, 0.5 + 0.3 * rows]})  # fmt: skip
    for column, (parameters, plans) in enumerate(groups.items()):
        draw_curves(grid[0, column], plans, limit)
        draw_table(grid[1, column], plans, limit)
        grid[0, column].set_title(f"{count_text(parameters)} parameters")
    note = "GB a rank, by number of ranks" + (f"; bold: fits into {bytes_text(limit)}" if limit else "")
    grid[1, 0].set_title(note, loc="left", fontsize=10, color="#444444")
    figure.legend_right(grid[0, -1])
    return picture


def draw_stacked(groups, limit):
    """Bars by stage, or over the ranks of one stage."""
    heights = [1.1 + 0.5 * len(plans) for plans in groups.values()]
    picture, grid = plt.subplots(
        len(groups), 1, figsize=(9, sum(heights) + 0.6), squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for axes, (parameters, plans) in zip(grid[:, 0], groups.items()):
        over_stages = len({plan["ranks"] for plan in plans}) == 1
        plans = sorted(plans, key=lambda plan: (plan["stage"], plan["ranks"]))
        labels = [STAGES[plan["stage"]] if over_stages else ranks_text(plan["ranks"]) for plan in plans]
        draw_bars(axes, plans, labels, limit)
        first = plans[0]
        where = ranks_text(first["ranks"]) if over_stages else STAGES[first["stage"]]
        axes.set_title(f"{count_text(parameters)} parameters, {where}")
    return picture


def draw_speed(groups):
    """Tokens per second over the numbers of ranks, and what they would be if every rank kept the speed of the first number."""
    picture, grid = plt.subplots(1, len(groups), figsize=(max(6 * len(groups), 10), 5), squeeze=False)
    for axes, (parameters, plans) in zip(grid[0], groups.items()):
        for number, stage in enumerate(sorted({plan["stage"] for plan in plans})):
            line = sorted(
                (p["ranks"], p["tokens_per_second"]) for p in plans if p["stage"] == stage and p.get("tokens_per_second")
            )
            if not line:
                raise SystemExit("--speed: the plans have no tokens_per_second; kzero plan needs a deck and rates for it")
            style = figure.Style(stage)
            axes.plot(*zip(*line), color=style.color, marker=style.marker, label=STAGES[stage])
            ideal = [(ranks, line[0][1] * ranks / line[0][0]) for ranks, _ in line]
            axes.plot(
                *zip(*ideal), color="#444444", linestyle="--", linewidth=1, label=None if number else "as the fewest ranks"
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sorted({plan["ranks"] for plan in plans})))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(figure.count_text)
        axes.yaxis.set_major_formatter(lambda value, _: count_text(round(value)))
        axes.set_xlabel("ranks")
        axes.set_title(f"{count_text(parameters)} parameters")
    grid[0, 0].set_ylabel("tokens/s, planned")
    figure.legend_right(grid[0, -1])
    return picture


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", nargs="+", metavar="PLAN.json", help="outputs of kzero plan --json; -: standard input")
    parser.add_argument("-o", "--output", default="plan.png", help="default: %(default)s")
    parser.add_argument("--limit", type=size_of, metavar="SIZE", help="memory of a device, such as 32GB, to mark what fits")
    parser.add_argument("--speed", action="store_true", help="draw tokens/s over the ranks in place of memory")
    arguments = parser.parse_args()
    groups = {}
    for path in arguments.plans:
        for plan in read(path):
            groups.setdefault(plan["parameters"], []).append(plan)
    groups = dict(sorted(groups.items()))
    over_both = any(len({p["ranks"] for p in plans}) > 1 and len({p["stage"] for p in plans}) > 1 for plans in groups.values())
    if arguments.speed:
        figure.save(draw_speed(groups), arguments.output)
        return
    figure.save((draw_over_ranks if over_both else draw_stacked)(groups, arguments.limit), arguments.output)


if __name__ == "__main__":
    main()
