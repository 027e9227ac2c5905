"""Names runs by the keys of their resolved decks that differ."""

import json
import tomllib

# Keys that affect where and for how long a job runs, but not what it computes or how.
PLACES = ("checkpoint.folder", "run.metrics", "run.end_file", "run.stop_file", "run.profile", "run.log_every", "run.progress",
          "run.max_steps", "run.wall_limit", "run.stop_margin", "run.slow_node_share", "checkpoint.resume")  # fmt: skip
MAX_CHARACTERS = 48


def flat(table, prefix=""):
    """The values of a deck by path, "zero.stage": 2; tables in lists are one value."""
    values = {}
    for name, value in table.items():
        if isinstance(value, dict):
            values.update(flat(value, f"{prefix}{name}."))
        else:
            values[prefix + name] = value
    return values


def deck_of(run):
    """The resolved deck by path; empty if the file does not have a readable one."""
    try:
        return flat(tomllib.loads(run.start.get("deck", "")))
    except tomllib.TOMLDecodeError:
        return {}


def differences(decks):
    """The paths whose values are not the same in all decks, in the decks' order."""
    paths = list(dict.fromkeys(path for deck in decks for path in deck))
    return [path for path in paths if len({json.dumps(deck.get(path)) for deck in decks}) > 1]


def text_of(value):
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


def name_runs(runs):
    """Names runs by the difference of their decks, "zero.stage=3"; by file or folder if there is none or it is too long."""
    decks = [deck_of(run) for run in runs]
    if len(runs) == 1 or not all(decks):
        return
    paths = [path for path in differences(decks) if path not in PLACES]
    labels = [", ".join(f"{path}={text_of(deck.get(path))}" for path in paths) for deck in decks]
    if not paths or any(len(label) > MAX_CHARACTERS for label in labels) or len(set(labels)) < len(labels):
        return
    for run, label in zip(runs, labels):
        run.name = label
