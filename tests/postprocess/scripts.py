"""Runs the scripts of postprocess/ in this process."""

import contextlib
import io
import runpy
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parent.parent / "postprocess"
sys.path[:0] = [str(HERE), str(SCRIPTS)]


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_script(self, script, *arguments):
        """As `python3 script arguments` does, in this process, which imports matplotlib once."""
        command = [str(SCRIPTS / script), *map(str, arguments)]
        stdout, stderr, code = io.StringIO(), io.StringIO(), 0
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            try:
                runpy.run_path(command[0], run_name="__main__")
            except SystemExit as end:
                code = end.code or 0
        if isinstance(code, str):  # a message, which Python prints
            stderr.write(code + "\n")
            code = 1
        return subprocess.CompletedProcess(command, code, stdout.getvalue(), stderr.getvalue())

    def draw(self, script, *files):
        picture = self.folder / "picture.png"
        return self.run_script(script, *files, "-o", picture), picture

    def check_picture(self, script, *files, height=500, size=15000):
        """A blank picture of this size compresses to a few kilobytes; one with curves does not."""
        result, picture = self.draw(script, *files)
        self.assertEqual(result.returncode, 0, result.stderr)
        data = picture.read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        columns, rows = struct.unpack(">II", data[16:24])
        self.assertGreaterEqual(columns, 1000)
        self.assertGreaterEqual(rows, height)
        self.assertGreater(len(data), size)
