#!/usr/bin/env python3
"""Computes on a host what a device has to repeat: losses of gpt2-124m in fp32 and bf16, and its initial weights.

    python3 references.py KZERO FOLDER

KZERO: a program of a host build. FOLDER: has the decks and the text of the bundle; references.json is written there.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from programs import Machine
from training import initial_weights, overrides_of, train

SECONDS = 3600  # for one run; a quiet pair of cores needs a minute


class Host(Machine):
    """A host build in place of a bundle's programs."""

    def __init__(self, program, folder, work):
        bundle = Path(folder).resolve()  # programs run in another folder
        super().__init__(bundle, bundle, work, work)
        self.kzero = Path(program).resolve()

    def program(self, name):
        return self.kzero

    def variables(self):
        return {"OMP_PROC_BIND": "false"}


def references(host):
    deck, found = "gpt2-124m.toml", {"runs": {}}
    for precision in ("fp32", "bf16"):
        training = train(host, precision, deck, overrides_of(host.bundle, precision), SECONDS)
        if not training.is_complete():
            raise SystemExit(f"references.py: {precision}: {training.done.how()}")
        found["runs"][precision] = {key: [step[key] for step in training.steps] for key in ("loss", "grad_norm")}
        found["versions"] = training.start["versions"]
    training, found["weights"] = initial_weights(host, "weights", deck, overrides_of(host.bundle, "fp32"), SECONDS)
    if found["weights"] is None:
        raise SystemExit(f"references.py: initial weights: {training.done.how()}")
    return found


def main(program, folder):
    work = Path(tempfile.mkdtemp(prefix="kzero_references."))
    try:
        found = references(Host(program, folder, work))
    finally:
        shutil.rmtree(work)
    Path(folder, "references.json").write_text(json.dumps(found, indent=1) + "\n")
    for precision, run in found["runs"].items():
        print(f"references.py: {precision} losses {' '.join(f'{loss:.4f}' for loss in run['loss'])}")


if __name__ == "__main__":
    main(*sys.argv[1:])
