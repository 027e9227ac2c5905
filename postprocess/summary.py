"""The rows of a table of runs: one text per run."""

import math
import statistics

import energy
import goodput
import naming


def count(number):
    """1234567 as "1.23 M"."""
    for size, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def duration(seconds):
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.1f} min" if minutes < 120 else f"{hours:.1f} h"


def median(run, name):
    values = [v for v in run.column(name) if math.isfinite(v)]
    return statistics.median(values) if values else None


def state(run):
    if not run.end:
        return "has not ended, or was killed"
    reason = run.end.get("reason", "")
    signal = run.end.get("signal")
    return f"{reason} ({signal})" if signal else reason


def hosts(run):
    names = list(dict.fromkeys(run.start.get("hosts", [])))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def grid(run):
    sizes = run.start.get("grid", {})
    data, tensor = sizes.get("data", 1), sizes.get("tensor", 1)
    return f"{data * tensor} ({data} data × {tensor} tensor)"


def steps(run):
    last = run.steps[-1]["step"] + 1 if run.steps else run.end.get("steps", 0)
    total = run.start.get("steps")
    return f"{last} of {total}" if total else str(last)


def tokens(run):
    return count(run.positions("tokens")[-1]) if run.steps else ""


def losses(run):
    """The last losses by kind. For training this is a mean over the last steps, because a single step's loss is noisy."""
    last = [v for v in run.column("loss")[-max(1, len(run.steps) // 50) :] if math.isfinite(v)]
    found = {"training": statistics.fmean(last) if last else None}
    for name, records in [("validation", run.validations), *run.evaluations.items()]:
        if records:
            found[name] = records[-1].get("loss")
    return found


def loss_text(run, name):
    loss = losses(run).get(name)
    return "" if loss is None else f"{loss:.4f}"


def best(run):
    found = [(v["loss"], v["step"]) for v in run.validations if v.get("loss") is not None]
    return "{:.4f} after {} steps".format(*min(found)) if found else ""


def loss_words(run):
    """The curve in words."""
    finite = [v for v in run.column("loss") if math.isfinite(v)]
    first = f"training starts at {finite[0]:.4f}" if finite else "no training loss is finite"
    lasts = [f"{name} ends at {loss:.4f}" for name, loss in losses(run).items() if loss is not None]
    restarts = f"; {len(run.restarts)} restart{'s' * (len(run.restarts) > 1)}" if run.restarts else ""
    return ", ".join([first, *lasts]) + restarts


def speed_words(run):
    speed, mfu = median(run, "tokens_per_second"), median(run, "mfu")
    return (f"{count(speed)} tokens/s" if speed else "no speed") + (f", MFU {share(mfu)}" if mfu else "") + ", medians"


def mfu_text(run):
    """The median, and the kind of its peak: a peak that was measured while others computed makes it too large."""
    peak = run.start.get("peak", {})
    kind = (
        " of a disturbed peak" if peak.get("disturbed") else " of a measured peak" if peak.get("source") == "measured" else ""
    )
    found = share(median(run, "mfu"))
    return found + kind if found else ""


def share(value):
    return "" if value is None else f"{100 * value:.1f} %"


def time_in(run, event):
    """Of all jobs, repeated steps included."""
    return duration(run.seconds[event]) if run.seconds.get(event) else ""


def productive(run):
    """The share of the wall time in steps that count."""
    times = goodput.of(run)
    return share(times.share("productive")) if times else ""


def rows(runs):
    """(name, one text per run) of everything that at least one run has."""
    versions = lambda run, key: str(run.start.get("versions", {}).get(key, ""))
    losses_of = dict.fromkeys(name for run in runs for name in losses(run))
    per_run = [
        ("ended", state),
        ("kzero", lambda r: " ".join(filter(None, (versions(r, "kzero"), versions(r, "git"))))),
        ("computes on", lambda r: ", ".join(filter(None, (versions(r, "execution"), r.start.get("precision", ""))))),
        ("nodes", hosts),
        ("ranks", grid),
        ("threads a rank", lambda r: str(r.start.get("threads", ""))),
        ("ZeRO stage", lambda r: str(r.start.get("stage", ""))),
        ("parameters", lambda r: count(r.start["parameters"]) if r.start.get("parameters") else ""),
        ("steps", steps),
        ("tokens", tokens),
        ("time in steps", lambda r: time_in(r, "step")),
        ("time in validation", lambda r: time_in(r, "validation")),
        ("time in evaluations", lambda r: time_in(r, "evaluation")),
        ("waits for checkpoints", lambda r: time_in(r, "checkpoint")),
        ("goodput", productive),
        ("energy", energy.words),
        ("energy a token", energy.a_token),
        ("restarts", lambda r: ", ".join(f"at {step}" for step in r.restarts)),
        ("skipped steps", lambda r: str(sum(bool(s.get("skipped")) for s in r.steps) or "")),
        ("tokens/s, median", lambda r: count(median(r, "tokens_per_second")) if median(r, "tokens_per_second") else ""),
        ("MFU, median", mfu_text),
        *((f"last {name} loss", lambda r, name=name: loss_text(r, name)) for name in losses_of),
        ("best validation loss", best),
    ]
    found = [(name, [text(run) for run in runs]) for name, text in per_run]
    return [(name, texts) for name, texts in found if any(texts)]


def deck_rows(runs):
    """The keys of the decks that differ."""
    decks = [naming.deck_of(run) for run in runs]
    return [(path, [naming.text_of(deck.get(path)) for deck in decks]) for path in naming.differences(decks)]
