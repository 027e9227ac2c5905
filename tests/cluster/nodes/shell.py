"""Commands of this machine, with errors that name the command and what it printed."""

import subprocess
import time


class ClusterError(RuntimeError):
    """A message for the person at the terminal."""


def call(*command, check=True, **settings):
    """Runs a command and returns its standard output. A failure is a ClusterError, or ignored with check=False."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, **settings)
    except FileNotFoundError as missing:
        raise ClusterError(f"{words[0]}: program not found") from missing
    if check and done.returncode != 0:
        raise ClusterError(f"{' '.join(words)}: exit code {done.returncode}: {(done.stdout + done.stderr).strip()}")
    return done.stdout


def wait_until(what, condition, seconds):
    """Waits until condition() is true and returns its value. Raises ClusterError after so many seconds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise ClusterError(f"waited {seconds} s for {what}")
        time.sleep(0.05)
    return found
