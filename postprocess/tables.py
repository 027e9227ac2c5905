"""Tables of a report on nodes and goodput: heads, and rows of texts."""

import goodput
import plot_nodes
import summary

MAX_INTERRUPTIONS = 40  # the last ones, which get their own rows


def step_seconds(seconds):
    return f"{seconds:.0f} s" if seconds >= 100 else f"{seconds:.3g} s"


def of_nodes(run):
    """The nodes of a run that its records list, the busiest first."""
    heads = ["computes a step", "waits a step", "waits", "waits without a core", "busiest rank", ""]
    rows = []
    for node in plot_nodes.nodes_of(run):
        compute, wait = node.step("compute"), node.step("wait")
        busiest = max(node.busiest, key=node.busiest.get)
        share = f"{100 * wait / (compute + wait):.0f} %" if compute + wait > 0 else ""
        cells = [step_seconds(compute), step_seconds(wait), share, step_seconds(node.step("no_core")), str(busiest)]
        rows.append((node.name, [*cells, "reported as slow" if node.slow else ""]))
    unlisted = plot_nodes.total_of(run) - len(rows)
    if unlisted > 0:
        rows.append((f"{unlisted} more, which computed for less long", [""] * len(heads)))
    return heads, rows


def of_goodput(found):
    """The parts of the wall time of each of (run, its goodput)."""
    rows = [(f"{part}: {text}", [part_text(times, part) for _, times in found]) for part, text in goodput.PARTS.items()]
    rows.append(("wall time, the sum", [summary.duration(times.total) for _, times in found]))
    if any(times.paused for _, times in found):
        rows.append(("pauses after a completed launch, not in the sum", [summary.duration(times.paused) for _, times in found]))
    rows.append(("launches", [str(times.launches) for _, times in found]))
    return [run.name for run, _ in found], rows


def part_text(times, part):
    return f"{summary.duration(max(0.0, times.seconds[part]))} ({100 * max(0.0, times.share(part)):.1f} %)"


def of_interruptions(times):
    """The interruptions of a run, the last ones if there are many."""
    heads = ["ended", "steps done", "next launch began at", "steps lost", "their time", "until the next launch"]
    rows, left_out = [], max(0, len(times.interruptions) - MAX_INTERRUPTIONS)
    if left_out:
        early = times.interruptions[:left_out]
        sums = [
            str(sum(one.lost for one in early)),
            *(summary.duration(sum(v)) for v in zip(*((one.seconds, one.away) for one in early))),
        ]
        rows.append((f"launches {early[0].launch} to {early[-1].launch}", ["", "", "", *sums]))
    for one in times.interruptions[left_out:]:
        cells = [
            one.reason,
            str(one.steps),
            str(one.resumed),
            str(one.lost),
            summary.duration(one.seconds),
            summary.duration(one.away),
        ]
        rows.append((f"launch {one.launch}", cells))
    return heads, rows


def goodput_text(run, times):
    """The picture of a run's goodput in words."""
    parts = [f"{100 * times.share(part):.0f} % {part}" for part in goodput.PARTS if times.share(part) >= 0.005]
    return f"{run.name}: {', '.join(parts)} of {summary.duration(times.total)} in {times.launches} {'launch' if times.launches == 1 else 'launches'}"


def nodes_text(run):
    """The picture of a run's nodes in words: how far apart the one that computed longest and the others are."""
    found = plot_nodes.nodes_of(run)
    busiest = found[0]
    text = f"{run.name}: {plot_nodes.total_of(run)} {plot_nodes.what(run)}, {busiest.name} computed longest, {step_seconds(busiest.step('compute'))} a step"
    if len(found) == 1:
        return text
    return f"{text}, {found[1].name} next, {step_seconds(found[1].step('compute'))}"
