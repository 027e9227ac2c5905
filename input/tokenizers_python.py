"""Ensures that the tokenizers library is available: if not, restarts with the Python for which cmake/debian.sh installed it."""

import importlib.util
import os
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[1] / ".deps/venv/bin/python3"


def find():
    if importlib.util.find_spec("tokenizers") is not None:
        return
    if TREE.exists() and not os.environ.get("KZERO_TREE_PYTHON"):
        os.execve(TREE, [str(TREE), *sys.argv], {**os.environ, "KZERO_TREE_PYTHON": "1"})
    raise SystemExit(f"{sys.executable} has no tokenizers: cmake/debian.sh installs it, or: pip install tokenizers")
