#!/usr/bin/env python3
"""A report of a metrics file in which any value may be damaged: it is made of what is left, or one line says why not."""

import contextlib
import io
import json
import random
import tempfile
import unittest
from pathlib import Path

import scripts  # noqa: F401 first: makes the scripts' folder known

# isort: split
import records
import report
from test_report import EXPERTS, write_run

WRONG = [None, True, -1, 2**70, 1.5, 1e400, float("nan"), "x", "$\\frac$", "", [], [1], {}, {"a": {}}, [[]], [{}]]


def places(value, path=()):
    """The paths of all values within a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def damaged(lines, path, wrong):
    """The lines with another value at the path; without the value if `wrong` is Ellipsis."""
    lines = json.loads(json.dumps(lines))
    holder = lines
    for key in path[:-1]:
        holder = holder[key]
    if wrong is Ellipsis:
        del holder[path[-1]]
    else:
        holder[path[-1]] = wrong
    return lines


class Damage(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.folder / "run.jsonl"
        rows = [{"host": "a", "first_rank": 0, "ranks": 1, "compute_seconds": 1.5, "wait_seconds": 0.5, "no_core_seconds": 0.0, "busiest_rank": 0,
                 "busiest_seconds": 1.5, "slow": False}]  # fmt: skip
        spread = {"min": 1.0, "mean": 1.0, "max": 1.5}
        node = {"event": "nodes", "step": 4, "steps": 4, "seconds": 2.0, "by": "node", "count": 1, "compute_seconds": spread, "wait_seconds": spread,
                "nodes": rows, "joules": 4.5}  # fmt: skip
        lines = [json.loads(line) for line in write_run(self.path, step=EXPERTS).read_text().splitlines()]
        lines[0]["process_seconds"] = 1.0
        lines[-1]["energy"] = {
            "joules": 9.5,
            "sources": ["RAPL"],
            "nodes": 1,
            "measured_nodes": 1,
            "devices": 0,
            "measured_devices": 0,
        }
        self.lines = [{**line, "time": 100.0 + i} for i, line in enumerate([*lines[:-1], node, lines[-1]])]

    def report(self, lines, draws):
        self.path.write_text("\n".join(map(json.dumps, lines)) + "\n")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                runs = records.read_all([self.path])
                drawn = []
                for name, title, text, picture in report.pictures(runs, "tokens") if draws else []:
                    report.png_of(picture)
                    drawn.append((name, title, text, bytes(24)))
                "".join(report.sections(runs, drawn))
                "".join(report.tables_below("experts", runs))
            except SystemExit as end:
                self.assertRegex(str(end), r"^[^\n]+: [^\n]+$")
        return said.getvalue()

    def test_every_value_may_be_of_another_kind(self):
        tried = 0
        for path in places(self.lines):
            for wrong in [*WRONG, ...]:
                with self.subTest(path=path, wrong=wrong):
                    self.report(damaged(self.lines, path, wrong), draws=False)
                    tried += 1
        self.assertGreater(tried, 1000)

    def test_pictures_of_damaged_files_are_drawn(self):
        rng = random.Random(5)
        paths = list(places(self.lines))
        for _ in range(5):
            path, wrong = rng.choice(paths), rng.choice(WRONG)
            with self.subTest(path=path, wrong=wrong):
                self.report(damaged(self.lines, path, wrong), draws=True)

    def test_the_first_damaged_line_is_named(self):
        self.assertEqual(self.report(self.lines, draws=False), "")
        said = self.report(damaged(self.lines, (2, "loss"), "x"), draws=False)
        self.assertEqual(said, f"{self.path}:3: not a record as kzero writes it; lines left out: 1\n")


if __name__ == "__main__":
    unittest.main()
