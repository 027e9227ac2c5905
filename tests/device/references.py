#!/usr/bin/env python3
"""Computes on a host what a device has to repeat: losses of gpt2-124m in fp32 and bf16, its initial weights, and the losses of
small models with the features of features.py.

    python3 references.py KZERO FILE [--rehearse]

KZERO: a program of a host build. FILE: gets the results as JSON. tests/device/references.json has those of the fixed text. Run
this again, and commit the file, after a change of the decks, the text or the arithmetic. --rehearse: with the small models of a
rehearsal, in seconds instead of minutes.
"""

import argparse
import datetime
import hashlib
import json
import tempfile
from pathlib import Path

import features
from programs import Machine
from training import fixed_text, initial_weights, overrides_of, train

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 3600  # for one run; a quiet pair of cores needs a minute


class Host(Machine):
    """A host build in place of a bundle's programs."""

    def __init__(self, program, folder, rehearses):
        super().__init__(folder, ROOT, folder, folder, rehearses=rehearses)
        self.kzero = Path(program).resolve()

    def program(self, name):
        return self.kzero

    def variables(self):
        return {"OMP_PROC_BIND": "false"}


def complete(training, what):
    """The training; ends the script if it failed."""
    if not training.is_complete():
        raise SystemExit(f"references.py: {what}: {training.done.how()}")
    return training


def references(host):
    deck, found = "gpt2-124m.toml", {"date": str(datetime.date.today()), "runs": {}, "features": {}}
    found["text_sha256"] = hashlib.sha256((host.bundle / "text").read_bytes()).hexdigest()
    for precision in ("fp32", "bf16"):
        training = complete(train(host, precision, deck, overrides_of(host.bundle, precision), SECONDS), precision)
        found["runs"][precision] = {"loss": training.losses()}
        found["versions"] = training.start["versions"]
    training, found["weights"] = initial_weights(host, "weights", deck, overrides_of(host.bundle, "fp32"), SECONDS)
    if found["weights"] is None:
        raise SystemExit(f"references.py: initial weights: {training.done.how()}")
    for name, changes in features.CASES:
        training = features.train_case(host, name, changes, SECONDS)
        found["features"][name] = complete(training, name).losses()
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("program")
    parser.add_argument("file", type=Path)
    parser.add_argument("--rehearse", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kzero_references.") as name:
        folder = Path(name)
        (folder / "decks").symlink_to(ROOT / "input")
        (folder / "text").write_bytes(fixed_text())
        found = references(Host(arguments.program, folder, arguments.rehearse))
    arguments.file.write_text(json.dumps(found) + "\n")
    for precision, run in found["runs"].items():
        print(f"references.py: {precision} losses {' '.join(f'{loss:.4f}' for loss in run['loss'])}")


if __name__ == "__main__":
    main()
