"""Shows the progress of prepare.py, and the files or lines that it cannot use."""

import sys
import threading
import time

from .documents import EncodingError, InputError
from .files import printable

MAX_PROBLEMS = 5  # most problems that are shown
MINUTE = 60  # seconds


class Progress:
    """Shows the progress on standard error: in one line on a terminal, otherwise in a new line every minute."""

    def __init__(self, what, total=0):
        self.what, self.total, self.done = what, total, 0
        self.begin = self.shown = time.monotonic()
        self.on_terminal = sys.stderr.isatty()
        self.every = 0.5 if self.on_terminal else MINUTE

    def add(self, characters):
        self.done += characters
        now = time.monotonic()
        if now - self.shown < self.every:
            return
        self.shown = now
        rate = max(self.done, 1) / (now - self.begin)
        text = f"{self.done / 1e6:.0f} M characters, {rate / 1e6:.1f} M/s"
        if self.total:
            left = int(max(self.total - self.done, 0) / rate)
            text = f"{100 * self.done // self.total} %, {text}, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
        begin, end = ("\r", "\x1b[K") if self.on_terminal else ("", "\n")
        print(f"{begin}{self.what}: {text}{end}", end="", file=sys.stderr, flush=True)

    def end(self):
        if self.on_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class Minutes:
    """While it is open, a new line on standard error every minute for work that shows no progress. Nothing on a terminal."""

    def __init__(self, what):
        self.what, self.begin, self.ended = what, time.monotonic(), threading.Event()

    def __enter__(self):
        if not sys.stderr.isatty():
            threading.Thread(target=self.show, daemon=True).start()

    def __exit__(self, *_):
        self.ended.set()

    def show(self):
        while not self.ended.wait(MINUTE):
            print(f"{self.what}: {(time.monotonic() - self.begin) / 60:.0f} min", file=sys.stderr, flush=True)


class Problems:
    """The problems of bad files or lines, `kind`. The first MAX_PROBLEMS are kept, and the others are counted."""

    def __init__(self, kind):
        self.kind, self.lines, self.count, self.has_encoding = kind, [], 0, False

    def add(self, error):
        self.count += 1
        self.has_encoding = self.has_encoding or isinstance(error, EncodingError)
        if self.count <= MAX_PROBLEMS:
            self.lines.append(error.args[0])

    def report(self, skips):
        """Raises InputError with the problems and what to do, or prints what is left out."""
        lines = list(self.lines)
        if self.count > MAX_PROBLEMS:
            lines.append(f"and {self.count - MAX_PROBLEMS} more {self.kind}")
        if lines and not skips:
            way_out = f"--skip-bad leaves out such {self.kind}"
            if self.has_encoding:
                way_out += ", --encoding NAME reads another encoding"
            lines[-1] += f" ({way_out})"
            raise InputError(*lines)
        for line in lines:
            print(f"left out: {printable(line)}", flush=True)
