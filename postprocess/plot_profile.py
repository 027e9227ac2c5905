#!/usr/bin/env python3
"""Draws a time line that run.profile wrote: the ranks' threads over time, and how their computing threads spent it.

Usage:

    python3 postprocess/plot_profile.py trace.json -o profile.png
"""

import argparse
import collections
import json
from dataclasses import dataclass, field

import figure
import matplotlib.pyplot as plt
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

KINDS = {"phase": "#d9d9d9", "kernel": "#0072b2", "product": "#009e73", "copy": "#56b4e9", "message": "#e69f00", "wait": "#d55e00",
         "file": "#cc79a7"}  # fmt: skip
MAX_RANKS, MAX_NAMES = 4, 14
STEP = "kzero::engine::step"


@dataclass
class Span:
    name: str
    kind: str
    begin: float  # ms, as all times
    end: float
    depth: int = 0
    inside: float = 0  # of the spans directly in it


@dataclass
class Lane:
    rank: int
    name: str
    spans: list = field(default_factory=list)

    def depth(self):
        return 1 + max(span.depth for span in self.spans)


def read(path):
    """The lanes that have spans, computing threads first within each rank; the file's own facts."""
    try:
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        events, facts = trace["traceEvents"], trace["otherData"]
    except OSError as error:
        raise SystemExit(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"{path}: is not a time line; give the file that run.profile names") from None
    lanes = {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "thread_name":
            lanes[event["pid"], event["tid"]] = Lane(event["pid"], event["args"]["name"])
    for event in events:
        if event["ph"] == "X":
            begin = event["ts"] / 1000
            span = Span(event["name"], event["cat"], begin, begin + event["dur"] / 1000)
            lanes[event["pid"], event["tid"]].spans.append(span)
    found = [lane for lane in lanes.values() if lane.spans]
    if not found:
        raise SystemExit(f"{path}: holds no span")
    for lane in found:
        nest(lane.spans)
    return sorted(found, key=lambda lane: (lane.rank, lane.name != "compute", lane.name)), facts


def nest(spans):
    """Fills in the depths, and what is within each span."""
    spans.sort(key=lambda span: (span.begin, -span.end))
    open_spans = []
    for span in spans:
        while open_spans and open_spans[-1].end <= span.begin:
            open_spans.pop()
        span.depth = len(open_spans)
        if open_spans:
            open_spans[-1].inside += span.end - span.begin
        open_spans.append(span)


def window_of(lanes, number):
    """Begin and end of the drawn time: of the step with this number on all ranks, of all steps, or of everything without steps."""
    steps = [sorted((span.begin, span.end) for span in lane.spans if span.name == STEP) for lane in lanes]
    steps = [found for found in steps if found]
    if not steps:
        spans = [span for lane in lanes for span in lane.spans]
        return min(span.begin for span in spans), max(span.end for span in spans)
    if number is not None:
        most = min(map(len, steps))
        if not 1 <= number <= most:
            raise SystemExit(f"--step {number}: the file has steps 1 to {most}")
        steps = [found[number - 1 : number] for found in steps]
    return min(found[0][0] for found in steps), max(found[-1][1] for found in steps)


def short(name):
    return name.rsplit("::", 1)[-1].replace("multiply_matrices ", "")


def draw_lanes(axes, lanes, window):
    """Each lane as rows of bars, with inner spans below outer ones."""
    begin, end = window
    top, bars, colors = 0.0, [], []
    for i, lane in enumerate(lanes):
        if i and lanes[i - 1].rank != lane.rank:
            axes.axhline(top - 0.3, color="#888888", linewidth=0.8)
            top += 0.4
        for span in lane.spans:
            if span.end < begin or span.begin > end:
                continue
            y = top + span.depth
            bars.append([(span.begin, y), (span.end, y), (span.end, y + 0.92), (span.begin, y + 0.92)])
            colors.append(KINDS.get(span.kind, "#000000"))
            text = short(span.name)
            if (span.end - span.begin) / (end - begin) > 0.02 * len(text):  # it has room
                middle = (max(span.begin, begin) + min(span.end, end)) / 2
                color = "black" if span.kind in ("phase", "message", "copy") else "white"
                axes.text(middle, y + 0.48, text, ha="center", va="center", fontsize=8, color=color, clip_on=True)
        name = f"rank {lane.rank}\n{lane.name}"
        axes.text(
            -0.008, top + lane.depth() / 2, name, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=9
        )
        top += lane.depth() + 0.6
    axes.add_collection(PolyCollection(bars, facecolors=colors, edgecolors="white", linewidths=0.15))
    axes.set_xlim(begin, end)
    axes.set_ylim(top, -0.2)
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("time (ms)")
    return top


def own_times(lanes, key):
    """Milliseconds of the lanes' spans by key(span), without the spans inside them."""
    times = collections.Counter()
    for lane in lanes:
        for span in lane.spans:
            times[key(span)] += max(0.0, span.end - span.begin - span.inside)
    return times


def draw_shares(axes, lanes):
    """How each rank's computing thread spent the time that its spans cover."""
    for row, lane in enumerate(lanes):
        times, left = own_times([lane], lambda span: span.kind), 0.0
        for kind, color in KINDS.items():
            share = 100 * times[kind] / (sum(times.values()) or 1)
            axes.barh(row, share, left=left, color=color, height=0.7)
            if share >= 4:
                dark = kind not in ("phase", "message", "copy")
                axes.text(
                    left + share / 2,
                    row,
                    f"{share:.0f} %",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if dark else "black",
                )
            left += share
    axes.set_yticks(range(len(lanes)), [f"rank {lane.rank}" for lane in lanes])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the computing thread's time (%)")


def draw_names(axes, lanes):
    """The names with the largest times, on average over the ranks."""
    times, kinds = own_times(lanes, lambda span: span.name), {span.name: span.kind for lane in lanes for span in lane.spans}
    most = times.most_common(MAX_NAMES)
    total = sum(times.values()) or 1
    values = [time / len(lanes) for _, time in most]
    bars = axes.barh(range(len(most)), values, color=[KINDS.get(kinds[name], "#000000") for name, _ in most], height=0.75)
    axes.bar_label(bars, [f"{100 * time / total:.1f} %" for _, time in most], padding=4, fontsize=8)
    axes.set_yticks(range(len(most)), [short(name) for name, _ in most], fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.12 * max(values))
    axes.set_xlabel("own time of a rank (ms)")


def draw(lanes, facts, window):
    shown = sorted({lane.rank for lane in lanes})[:MAX_RANKS]
    rows = [lane for lane in lanes if lane.rank in shown]
    computing = [lane for lane in lanes if lane.name == "compute"]
    heights = [
        0.5 + 0.24 * sum(lane.depth() + 0.7 for lane in rows),
        0.9 + 0.3 * min(len(computing), 16),
        0.8 + 0.2 * MAX_NAMES,
    ]
    picture, panels = plt.subplots(3, 1, figsize=(6.5, sum(heights) + 0.8), dpi=220, gridspec_kw={"height_ratios": heights})
    draw_lanes(panels[0], rows, window)
    draw_shares(panels[1], computing[:16])
    draw_names(panels[2], computing)
    ranks = facts.get("ranks", len(shown))
    title = f"Time line of {facts.get('steps', 'a run')}, {ranks} rank{'s' * (ranks != 1)}"
    panels[0].set_title(title + (f"; the first {len(shown)} are drawn" if len(shown) < ranks else ""))
    used = [kind for kind in KINDS if any(span.kind == kind for lane in lanes for span in lane.spans)]
    panels[0].legend(
        [Patch(color=KINDS[kind]) for kind in used], used, loc="upper left", bbox_to_anchor=(1.005, 1), borderaxespad=0
    )
    return picture


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", metavar="TRACE.json", help="the file that run.profile names")
    parser.add_argument("-o", "--output", default="profile.png", help="default: %(default)s")
    parser.add_argument("--step", type=int, metavar="N", help="one recorded step, counted from 1; default: all of them")
    parser.add_argument(
        "--begin", type=float, metavar="MS", help="where the drawn time begins; default: at the begin of the steps"
    )
    parser.add_argument("--end", type=float, metavar="MS", help="where it ends; default: at the end of the steps")
    parser.add_argument(
        "--ranks", type=int, nargs="+", metavar="RANK", help=f"the ranks; default: all, {MAX_RANKS} in the time line"
    )
    arguments = parser.parse_args()
    lanes, facts = read(arguments.trace)
    if arguments.ranks:
        lanes = [lane for lane in lanes if lane.rank in arguments.ranks]
    if not any(lane.name == "compute" for lane in lanes):
        raise SystemExit(f"{arguments.trace}: holds no computing thread of these ranks")
    begin, end = window_of(lanes, arguments.step)
    window = (begin if arguments.begin is None else arguments.begin, end if arguments.end is None else arguments.end)
    if window[0] >= window[1]:
        raise SystemExit(f"--begin {window[0]:g} is not before --end {window[1]:g}")
    figure.save(draw(lanes, facts, window), arguments.output)


if __name__ == "__main__":
    main()
