#!/usr/bin/env python3
"""The plot scripts draw a small metrics file; the reader takes the last record of a step."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import scripts
from scripts import SCRIPTS

# isort: split
import plot_distillation
import plot_preferences
import records
import report
import synthetic

START = {"event": "start", "first_step": 0}


def step(number, **values):
    return {"event": "step", "step": number, "loss": 1.0, **values}


class Plots(scripts.Scripts):
    def setUp(self):
        super().setUp()
        self.run_file = self.folder / "small.jsonl"
        synthetic.write(self.run_file)

    def test_loss_is_drawn(self):
        self.check_picture("plot_loss.py", self.run_file)

    def test_the_script_is_a_program(self):
        picture = self.folder / "program.png"
        done = subprocess.run(
            [SCRIPTS / "plot_loss.py", self.run_file, "-o", picture], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(picture.read_bytes()[:4], b"\x89PNG")

    def test_throughput_is_drawn(self):
        self.check_picture("plot_throughput.py", self.run_file)

    def test_memory_is_drawn(self):
        self.check_picture("plot_memory.py", self.run_file)

    def test_preferences_are_drawn(self):
        result, _ = self.draw("plot_preferences.py", self.run_file)
        self.assertEqual(result.returncode, 1)
        self.assertIn("has no steps with pairs", result.stderr)
        some = self.folder / "some.jsonl"
        rewards = lambda n: {"pairs": 4, "chosen_reward": 0.1 * n, "rejected_reward": -0.2 * n, "accuracy": 0.75}
        records_of = [START, *(step(n, grad_norm=1.0, lr=1.0, **rewards(n)) for n in range(40)), step(40)]
        some.write_text("".join(json.dumps(record) + "\n" for record in records_of))
        self.check_picture("plot_preferences.py", some)
        self.check_picture("plot_preferences.py", some, self.run_file)
        (run,) = records.read_all([some])
        said = "rewards 3.9 and -7.8 in the last step, in which the chosen answer wins 75 % of the pairs"
        self.assertEqual(plot_preferences.words(run), said)
        titles = [title for _, title, _, _ in report.pictures([run], "steps")]
        self.assertEqual(titles, ["Loss", "Preferences", "Throughput"])
        self.assertEqual(report.description_of("preferences", "Preferences", [run]), f"Preferences: some: {said}")

    def test_a_teacher_is_drawn(self):
        result, _ = self.draw("plot_distillation.py", self.run_file)
        self.assertEqual(result.returncode, 1)
        self.assertIn("has no steps beside a teacher", result.stderr)
        some = self.folder / "some.jsonl"
        parts = lambda n: {"cross_entropy": 5 - 0.1 * n, "kl": 2 - 0.02 * n}
        records_of = [START, *(step(n, grad_norm=1.0, lr=1.0, **parts(n)) for n in range(40)), step(40)]
        some.write_text("".join(json.dumps(record) + "\n" for record in records_of))
        self.check_picture("plot_distillation.py", some)
        self.check_picture("plot_distillation.py", some, self.run_file)
        (run,) = records.read_all([some])
        said = "cross-entropy 1.1 and KL 1.22 in the last step"
        self.assertEqual(plot_distillation.words(run), said)
        titles = [title for _, title, _, _ in report.pictures([run], "steps")]
        self.assertEqual(titles, ["Loss", "A teacher", "Throughput"])
        self.assertEqual(report.description_of("distillation", "A teacher", [run]), f"A teacher: some: {said}")

    def test_two_runs_share_a_picture(self):
        other = self.folder / "other.jsonl"
        synthetic.write(other, scale=2)
        for script in ("plot_loss.py", "plot_throughput.py", "plot_memory.py"):
            self.check_picture(script, self.run_file, other)

    def test_a_run_that_is_still_going_has_a_loss_but_no_memory(self):
        lines = self.run_file.read_text().splitlines()
        self.run_file.write_text("\n".join(lines[:40]))
        self.check_picture("plot_loss.py", self.run_file)
        result, _ = self.draw("plot_memory.py", self.run_file)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("has not ended in order", result.stderr)

    def test_a_missing_or_foreign_file_is_named(self):
        foreign = self.folder / "foreign.jsonl"
        foreign.write_text("words\n[1]\n")
        absent = self.folder / "absent"
        for path, text in ((foreign, "holds no record"), (absent, "cannot be read")):
            result, _ = self.draw("plot_loss.py", path)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(f"{path}: {text}", result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_a_bad_output_is_one_line(self):
        for output in (self.folder / "nowhere" / "x.png", self.folder, self.folder / "x.words"):
            result = self.run_script("plot_throughput.py", self.run_file, "-o", output)
            self.assertEqual(result.returncode, 1)
            self.assertTrue(result.stderr.startswith(f"{output}: "), result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_an_output_without_an_ending_is_a_png(self):
        result = self.run_script("plot_throughput.py", self.run_file, "-o", self.folder / "picture")
        self.assertEqual(result.stdout, f"wrote {self.folder / 'picture'}.png\n", result.stderr)
        self.assertTrue((self.folder / "picture.png").exists())

    def test_tokens_are_another_axis(self):
        for script in ("plot_loss.py", "plot_throughput.py"):
            self.check_picture(script, self.run_file, "--x", "tokens")

    def test_runs_of_one_file_are_drawn_one_by_one(self):
        both = self.folder / "both.jsonl"
        synthetic.write(self.folder / "other.jsonl", scale=2)
        both.write_text(self.run_file.read_text() + (self.folder / "other.jsonl").read_text())
        for script in ("plot_loss.py", "plot_memory.py"):
            self.check_picture(script, both)

    def test_a_python_without_matplotlib_says_what_to_install(self):
        # -S -I: a Python that sees no installed package, and takes itself for Debian's.
        program = f"import os, sys; sys.path.insert(0, {str(SCRIPTS)!r}); os.path.realpath = lambda path: 'the same'; import matplotlib_python"
        result = subprocess.run([sys.executable, "-S", "-I", "-B", "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^\S+ has no matplotlib: install it .*\n$")


class Experts(scripts.Scripts):
    def write(self, name, *loads):
        """A run whose steps have these loads of blocks."""
        lines = [
            {**step(i), "expert_load": load, "expert_entropy": [1 / max(1, one) for one in load]}
            for i, load in enumerate(loads)
        ]
        path = self.folder / name
        path.write_text("".join(json.dumps(line) + "\n" for line in [START, *lines]))
        return path

    def axes(self, *files):
        import matplotlib.pyplot as plt
        import plot_experts

        picture = plot_experts.draw(records.read_all(files), "steps")
        self.addCleanup(plt.close, picture)
        return picture.axes

    def curve(self, axes, label):
        (line,) = [line for line in axes.lines if line.get_label() == label]
        return list(line.get_ydata())

    def test_few_blocks_have_a_line_each_with_a_gap_where_there_is_no_choice(self):
        load, entropy = self.axes(self.write("few.jsonl", [1.5, 2.0], [0.0, 2.0], [0.0, 2.0], [2.5, 4.0]))
        self.assertEqual(str(self.curve(load, "block 0")), "[1.5, 1.5, 2.5, 2.5]")
        raw = [line for line in load.lines if line.get_alpha()]
        self.assertEqual(str(list(raw[0].get_ydata())), "[1.5, nan, nan, 2.5]")
        self.assertEqual(self.curve(entropy, "block 1"), [0.5, 0.5, (0.5 + 0.5 + 0.25) / 3, 0.375])

    def test_many_blocks_are_a_band_around_their_median(self):
        load, _ = self.axes(self.write("many.jsonl", *3 * [[1.5, 2, 3, 4, 5, 6, 7.5]], 7 * [0.0]))
        self.assertEqual(self.curve(load, "median block"), 4 * [4.0])
        (band,) = load.collections
        self.assertEqual(band.get_label(), "all 7 blocks")
        self.assertEqual((band.get_datalim(load.transData).y0, band.get_datalim(load.transData).y1), (1.5, 7.5))

    def test_a_dense_run_keeps_its_colour(self):
        import figure

        dense, mixture = self.write("dense.jsonl", [], []), self.write("mixture.jsonl", [2.0], [2.0])
        load, _ = self.axes(dense, mixture)
        self.assertEqual({line.get_label() for line in load.lines if line.get_alpha() is None}, {"block 0", "equal shares"})
        other = self.write("other.jsonl", [2.0], [2.0])
        load, _ = self.axes(dense, mixture, other)
        colors = {line.get_label(): line.get_color() for line in load.lines}
        self.assertEqual([colors[f"{name}: median block"] for name in ("mixture", "other")], figure.COLORS[1:3])

    def test_the_script_draws_or_says_that_there_are_none(self):
        for files in (["few.jsonl", [1.5, 2.0], [1.4, 1.8]], ["many.jsonl", *20 * [list(range(2, 12))]]):
            self.check_picture("plot_experts.py", self.write(*files))
        dense = self.write("dense.jsonl", [], [])
        result, _ = self.draw("plot_experts.py", dense)
        self.assertEqual(
            (result.returncode, result.stderr),
            (1, "dense: has no record of experts; its model has none, or the file is of an older kzero\n"),
        )


class Styles(unittest.TestCase):
    def test_runs_differ_by_hue_and_by_dash_and_marker(self):
        import figure

        styles = [figure.Style(number) for number in range(24)]
        self.assertEqual(len({(style.color, str(style.dash)) for style in styles}), 24)
        for kind in ("color", "dash", "marker"):
            self.assertEqual(len({str(getattr(style, kind)) for style in styles[:6]}), 6, kind)

    def labels(self, axis):
        axis.get_figure().canvas.draw()
        return [label.get_text() for label in axis.get_ticklabels()]

    def test_ticks_of_counts_are_short_and_have_one_unit(self):
        import figure
        import matplotlib.pyplot as plt

        for ticks, expected in (
            ([0, 500, 2000, 8000], ["0", "500", "2000", "8000"]),
            ([0, 5000, 10000, 25000], ["0", "5k", "10k", "25k"]),
            ([50000, 100000, 150000], ["50k", "100k", "150k"]),
            ([0, 250e3, 2.5e6, 1e7], ["0", "0.25M", "2.5M", "10M"]),
            ([1e9, 5e10], ["1G", "50G"]),
        ):
            picture, axes = plt.subplots()
            axes.set_xlim(ticks[0], ticks[-1])
            figure.name_axis(axes, "steps")
            axes.set_xticks(ticks)
            self.assertEqual(self.labels(axes.xaxis), expected)
            plt.close(picture)
        self.assertEqual([figure.count_text(n) for n in (64, 4096, 100000, 1048576)], ["64", "4096", "100k", "1.049M"])

    def test_ticks_of_the_loss_scale_can_be_read(self):
        import matplotlib.pyplot as plt
        import plot_loss

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.jsonl"
            path.write_text("".join(json.dumps({**step(i), "loss_scale": 2.0 ** (15 + i)}) + "\n" for i in range(3)))
            picture, axes = plt.subplots()
            plot_loss.draw_scale(axes, records.read(path), "steps")
        self.assertIn("2^16", self.labels(axes.yaxis))
        plt.close(picture)

    def test_memory_of_several_runs_has_one_scale(self):
        import matplotlib.pyplot as plt
        import plot_memory

        picture, (small, large) = plt.subplots(2, 1)
        for axes, size in ((small, 2**20), (large, 2**33)):
            row = {"rank": 0, "resident_peak_bytes": size,
                   "categories": {"io": {"planned_bytes": size // 2, "peak_bytes": size // 2}}}  # fmt: skip
            plot_memory.draw_run(axes, "run", row, plot_memory.unit_of(2**33), 2**33)
        self.assertEqual(small.get_xlim(), large.get_xlim())
        self.assertEqual(small.get_xlabel(), large.get_xlabel())
        plt.close(picture)


class Reader(unittest.TestCase):
    def read(self, *records_of_file, name="run.jsonl"):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records_of_file))
        return records.read(path)

    def test_the_last_record_of_a_repeated_step_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            synthetic.write(Path(folder) / "run.jsonl")
            (run,) = records.read(Path(folder) / "run.jsonl")
        self.assertEqual([r["step"] for r in run.steps], list(range(300)))
        self.assertLess(max(r["loss"] for r in run.steps), 99.0)
        self.assertEqual([v["step"] for v in run.validations], [50, 100, 150, 200, 250, 300])
        self.assertEqual(run.restarts, [150])
        self.assertEqual(run.end["reason"], "completed")

    def test_a_start_at_step_0_begins_another_run(self):
        first, second = self.read(
            START, step(0), step(1), START, {**START, "first_step": 0}, step(0), {**START, "first_step": 1}, step(1), step(2)
        )
        self.assertEqual(([r["step"] for r in first.steps], first.restarts), ([0, 1], []))
        self.assertEqual(([r["step"] for r in second.steps], second.restarts), ([0, 1, 2], [1]))
        self.assertEqual((first.name, second.name), ("run #1", "run #2"))

    def test_starts_without_steps_are_no_restarts_and_leave_the_end_alone(self):
        end = {"event": "end", "memory": [], "reason": "completed"}
        again = [{**START, "first_step": 2}, {**end, "reason": "nothing to do"}]
        (run,) = self.read(START, step(0), step(1), end, *again, *again)
        self.assertEqual((run.restarts, run.end["reason"]), ([], "completed"))
        (run,) = self.read(START, step(0), step(1), end, {**START, "first_step": 2}, step(2))
        self.assertEqual((run.restarts, run.end), ([2], {}))

    def test_a_file_without_steps_is_named(self):
        with self.assertRaisesRegex(SystemExit, "run.jsonl: holds no step of a run yet"):
            self.read(START)

    def test_records_of_other_programs_are_passed_over(self):
        (run,) = self.read(START, [1], 2, {"event": "step"}, {"event": "step", "step": "one"}, {"step": 7}, step(0))
        self.assertEqual([r["step"] for r in run.steps], [0])

    def test_positions_count_tokens_from_the_beginning_of_the_training(self):
        (run,) = self.read({**START, "first_step": 10}, step(10, tokens=5), step(11, tokens=7))
        self.assertEqual(run.positions("steps"), [11, 12])
        self.assertEqual(run.positions("tokens"), [55, 62])
        self.assertEqual(run.positions("tokens", [10, 12]), [50, 62])

    def test_names_are_those_that_a_user_gave(self):
        self.assertEqual(records.name_of(Path("runs/first/metrics.jsonl")), "first")
        self.assertEqual(records.name_of(Path("runs/first/metrics.2.jsonl")), "first.2")
        self.assertEqual(records.name_of(Path("runs/first/wide.jsonl")), "wide")

    def test_files_of_one_name_are_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [f"{folder}/{part}/x/metrics.jsonl" for part in "ab"]
            for path in paths:
                Path(path).parent.mkdir(parents=True)
                synthetic.write(path)
            self.assertEqual([run.name for run in records.read_all(paths)], paths)

    def test_smoothing_leaves_out_what_is_not_a_number(self):
        self.assertEqual(records.smoothed([1.0, float("nan"), 3.0]), [1.0, 2.0, 3.0])


if __name__ == "__main__":
    unittest.main()
