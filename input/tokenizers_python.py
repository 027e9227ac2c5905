"""Ensures that the tokenizers library is available: if not, restarts with the Python for which cmake/debian.sh installed it."""

import importlib.util
import os
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[1] / ".deps/venv/bin/python3"


def find(*others):
    """`others`: modules that are needed as well."""
    missing = [name for name in ("tokenizers", *others) if importlib.util.find_spec(name) is None]
    if not missing:
        return
    if TREE.exists() and not os.environ.get("KZERO_TREE_PYTHON"):
        os.execve(TREE, [str(TREE), *sys.argv], {**os.environ, "KZERO_TREE_PYTHON": "1"})
    names = " and ".join(missing)
    raise SystemExit(f"{sys.executable} has no {names}: cmake/debian.sh installs it, or: pip install {' '.join(missing)}")
