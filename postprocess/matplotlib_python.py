"""Ensures that matplotlib is available: import this first. Without matplotlib, restarts with Debian's Python if that has it."""

import importlib.util
import os
import subprocess
import sys

DEBIAN = "/usr/bin/python3"


def has_matplotlib(python):
    try:
        return subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


if importlib.util.find_spec("matplotlib") is None:
    if os.path.realpath(sys.executable) != os.path.realpath(DEBIAN) and has_matplotlib(DEBIAN):
        print(f"{sys.executable} has no matplotlib: using {DEBIAN} instead", file=sys.stderr, flush=True)
        os.execv(DEBIAN, [DEBIAN, *sys.argv])
    raise SystemExit(
        f"{sys.executable} has no matplotlib: install it (apt install python3-matplotlib, or pip install matplotlib)"
    )
