"""Ensures that the libraries of prepare.py are available: if not, restarts with the Python for which cmake/debian.sh installed them."""

import importlib.metadata
import os
import re
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2] / ".deps/venv/bin/python3"

# The oldest versions that are used. In older ones of Jinja a template can leave the sandbox, or read the environment.
OLDEST = {"tokenizers": "", "jinja2": "3.1.6"}


def numbers(version):
    return [int(digits) for digits in re.findall(r"\d+", version)][:3]


def problem_with(module):
    """What is missing; empty if the module is there in a version that is new enough."""
    try:
        version = importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return f"no {module}"
    return f"{module} {version}" if numbers(version) < numbers(OLDEST[module]) else ""


def find(*others):
    """`others`: modules that are needed in addition to tokenizers."""
    modules = ("tokenizers", *others)
    problems = [problem for module in modules if (problem := problem_with(module))]
    if not problems:
        return
    if TREE.exists() and not os.environ.get("KZERO_TREE_PYTHON"):
        os.execve(TREE, [str(TREE), *sys.argv], {**os.environ, "KZERO_TREE_PYTHON": "1"})
    needed = " ".join(f"'{name}>={OLDEST[name]}'" if OLDEST[name] else name for name in modules)
    raise SystemExit(f"{sys.executable} has {' and '.join(problems)}: cmake/debian.sh installs it, or: pip install {needed}")
