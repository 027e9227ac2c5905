#!/usr/bin/env python3
"""The report's page holds its pictures and its runs' facts; plans and time lines are drawn; event files hold the curves."""

import base64
import json
import struct
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import scripts  # first: makes the scripts' folder known

# isort: split
import curves
import energy
import naming
import records
import report
import summary
import synthetic
import tensorboard_files

DECK = """
[zero]
stage = {stage}
[train]
precision = "{precision}"
[data]
files = ["<b>.txt"]
[run]
metrics = "{metrics}"
"""

EXPERTS = {"expert_load": [1.5, 3.0, 0.0], "expert_entropy": [0.9, 0.5, 0.0]}  # of two blocks, and one without choices


def write_run(path, stage=1, precision="fp32", **changes):
    """A run of some steps with all that a record can have."""
    deck = DECK.format(stage=stage, precision=precision, metrics=path)
    traffic = {"group": "data", "operation": "all_gather", "purpose": "parameters", "elements_per_step": 100, "bytes_per_step": 400,
               "expected_elements_per_step": 99}  # fmt: skip
    lines = [
        {"event": "start", "first_step": 0, "deck": deck, "hosts": ["a", "a"], "grid": {"data": 2, "tensor": 1}, "stage": stage,
         "precision": precision, "parameters": 842496, "steps": 9, "threads": 1, "versions": {"kzero": "0.1.0", "git": "<i>"}},
        *({"event": "step", "step": n, "loss": 1.0, "grad_norm": 1.0, "lr": 1e-3, "tokens": 50, "seconds": 0.5, "tokens_per_second": 100.0,
           "mfu": 0.25, "loss_scale": changes.get("scale", 1), "skipped": n == 3, **changes.get("step", {})} for n in range(9)),
        {"event": "validation", "step": 4, "loss": 2.5, "tokens": 10, "seconds": 1.5},
        {"event": "evaluation", "name": "wiki", "step": 4, "loss": 3.25, "tokens": 10, "seconds": 1.0},
        {"event": "evaluation", "name": "wiki", "step": 9, "loss": 3.125, "tokens": 10, "seconds": 1.0},
        {"event": "checkpoint", "step": 9, "folder": "x", "bytes": 9, "seconds": 100.0, "stall_seconds": 0.25},
        {"event": "end", "reason": "signal", "signal": "SIGTERM", "steps": 9, "traffic": [traffic], "memory": [
            {"rank": 0, "resident_peak_bytes": 9000, "categories": {"gradients": {"planned_bytes": 80, "peak_bytes": 80}}}]},
    ]  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


class Page(HTMLParser):
    """The files that a page loads, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.sources, self.texts, self.starts = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.starts.append((tag, attributes))
        self.sources += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        self.texts.append(data)


class Report(scripts.Scripts):
    def page(self, *arguments):
        target = self.folder / "report.html"
        result = self.run_script("report.py", *arguments, "-o", target)
        self.assertEqual(result.returncode, 0, result.stderr)
        return Page(target.read_text())

    def test_a_page_needs_no_other_file(self):
        page = self.page(write_run(self.folder / "first/metrics.jsonl"), "--png", self.folder / "png")
        self.assertEqual(len(page.sources), 4)
        pngs = sorted(path.read_bytes() for path in (self.folder / "png").iterdir())
        inlined = sorted(base64.b64decode(source.removeprefix("data:image/png;base64,")) for source in page.sources)
        self.assertEqual(pngs, inlined)
        self.assertEqual(
            sorted(p.name for p in (self.folder / "png").iterdir()), ["loss.png", "memory.png", "throughput.png", "traffic.png"]
        )
        for picture in pngs:
            self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")

    def test_a_narrow_screen_scrolls_wide_pictures_at_a_size_that_can_be_read(self):
        page = self.page(write_run(self.folder / "run.jsonl"))
        images = [dict(attributes) for tag, attributes in page.starts if tag == "img"]
        widths = [int(image["style"].removeprefix("min-width:").removesuffix("px")) for image in images]
        self.assertGreaterEqual(min(widths), 300)
        for number, (tag, _) in enumerate(page.starts):
            if tag in ("img", "table"):
                self.assertEqual(page.starts[number - 1], ("div", [("class", "wide")]), "scrolls by itself, not the page")

    def test_pictures_are_described_by_what_they_show(self):
        path = write_run(self.folder / "run.jsonl")
        said = [
            report.description_of(name, name, records.read_all([path])) for name in ("loss", "throughput", "memory", "traffic")
        ]
        self.assertEqual(said, ["loss: run: training starts at 1.0000, training ends at 1.0000, validation ends at 2.5000, wiki ends at 3.1250",
                                "throughput: run: 100 tokens/s, MFU 25.0 %, medians",
                                "memory: run: rank 0, 80 B planned, 80 B at the peak, 8.79 KiB resident",
                                "traffic: run: all_gather of parameters over data: 400 B a step, 396 B expected"])  # fmt: skip

    def test_experts_have_a_section_if_a_run_has_any(self):
        dense = write_run(self.folder / "dense.jsonl")
        self.assertNotIn("Experts", self.page(dense).texts)
        page = self.page(dense, write_run(self.folder / "mixture.jsonl", step=EXPERTS), "--png", self.folder / "png")
        self.assertIn("Experts", page.texts)
        self.assertTrue((self.folder / "png/experts.png").exists())
        said = "mixture: block 1 has the busiest expert, 3.00 times the mean, and entropy 0.500; medians of 2 blocks 2.25 and 0.700"
        self.assertIn(f"Last steps of {said}.", page.texts)
        self.assertIn(f"Experts: {said}", [dict(attributes).get("alt") for _, attributes in page.starts])

    def test_texts_of_a_run_are_no_tags(self):
        page = self.page(write_run(self.folder / "metrics.jsonl"))
        self.assertNotIn("b", page.tags)
        self.assertNotIn("i", page.tags)
        self.assertIn("0.1.0 <i>", page.texts)

    def test_a_folder_names_its_metrics_file(self):
        write_run(self.folder / "run/metrics.jsonl")
        self.assertIn("Run run", self.page(self.folder / "run").texts)
        self.assertIn("Speed & <loss>", self.page(self.folder / "run", "--title", "Speed & <loss>").texts)
        write_run(self.folder / "other/a.jsonl")
        write_run(self.folder / "other/b.jsonl")
        result = self.run_script("report.py", self.folder / "other")
        self.assertEqual(
            (result.returncode, result.stderr),
            (1, f"{self.folder}/other: holds more than one metrics file (*.jsonl); name the file\n"),
        )

    def test_runs_are_named_by_what_differs(self):
        page = self.page(write_run(self.folder / "a.jsonl", stage=1), write_run(self.folder / "b.jsonl", stage=3))
        for name in ("zero.stage=1", "zero.stage=3", "2 runs"):
            self.assertIn(name, page.texts)

    def test_a_run_that_goes_on_is_said_to_lack_what_comes_at_the_end(self):
        path = write_run(self.folder / "a.jsonl")
        path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
        page = self.page(path)
        self.assertEqual(len(page.sources), 2)
        self.assertIn("has not ended, or was killed", page.texts)
        self.assertTrue(any(text.startswith("No memory or traffic of a:") for text in page.texts))

    def test_a_restarted_run_of_another_program_version_is_drawn(self):
        synthetic.write(self.folder / "old.jsonl")
        self.assertIn("at 150", self.page(self.folder / "old.jsonl", "--x", "tokens").texts)

    def test_an_output_that_cannot_be_written_is_named(self):
        (self.folder / "file").write_text("")
        result = self.run_script("report.py", write_run(self.folder / "a.jsonl"), "-o", self.folder / "file/report.html")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{self.folder}/file/report.html: cannot be written", result.stderr)

    def test_an_existing_file_is_replaced_and_not_written_into(self):
        """Whoever made it may have it open, and it may be another name of a file that has to stay."""
        precious = self.folder / "precious"
        precious.write_text("precious")
        for name, script in (("report.html", "report.py"), ("loss.png", "plot_loss.py")):
            (self.folder / name).hardlink_to(precious)
            result = self.run_script(script, write_run(self.folder / "a.jsonl"), "-o", self.folder / name)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertGreater((self.folder / name).stat().st_size, 1000)
        self.assertEqual(precious.read_text(), "precious")
        self.assertEqual(list(self.folder.glob(".*")), [])


class Facts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def runs(self, *changes):
        return records.read_all([write_run(self.folder / f"{i}.jsonl", **change) for i, change in enumerate(changes)])

    def test_rows_say_what_the_records_say(self):
        rows = {name: texts for name, (texts) in summary.rows(self.runs({}))}
        expected = {"ended": "signal (SIGTERM)", "ranks": "2 (2 data × 1 tensor)", "parameters": "842 k", "steps": "9 of 9", "tokens": "450",
                    "time in steps": "4.5 s", "time in validation": "1.5 s", "time in evaluations": "2.0 s", "waits for checkpoints": "0.2 s",
                    "skipped steps": "1", "tokens/s, median": "100", "MFU, median": "25.0 %", "last training loss": "1.0000",
                    "last validation loss": "2.5000", "last wiki loss": "3.1250", "best validation loss": "2.5000 after 4 steps"}  # fmt: skip
        for name, text in expected.items():
            self.assertEqual(rows[name], [text], name)
        self.assertNotIn("restarts", rows)

    def test_a_peak_that_was_disturbed_is_said_to_be(self):
        for peak, text in (({"source": "run.peak_tflops", "disturbed": False}, "25.0 %"), ({"source": "measured", "disturbed": False}, "25.0 % of a measured peak"),
                           ({"source": "measured", "disturbed": True}, "25.0 % of a disturbed peak")):  # fmt: skip
            (run,) = self.runs({})
            run.start["peak"] = peak
            self.assertEqual(summary.mfu_text(run), text)

    def test_energy_is_of_all_launches(self):
        (run,) = self.runs({})
        self.assertEqual((energy.words(run), energy.a_token(run)), ("", ""))
        measured = {"joules": 7200.0, "sources": ["RAPL"], "nodes": 2, "measured_nodes": 2, "devices": 0, "measured_devices": 0}
        nodes = [{"event": "nodes", "step": 2, "joules": joules} for joules in (500.0, 1300.0)]
        run.launches = [[{"event": "start"}, *nodes], [{"event": "start"}, nodes[0], {"event": "end", "energy": measured}]]
        run.end = run.launches[-1][-1]
        self.assertEqual(energy.of(run), (9000.0, 0))  # the first launch was killed
        self.assertEqual((energy.words(run), energy.a_token(run)), ("9 kJ by RAPL", "20 J"))
        run.launches.append([{"event": "start"}])
        measured["measured_nodes"], measured["joules"] = 1, 3.6e6
        self.assertEqual(energy.words(run), "1 kWh by RAPL, 1 of 2 nodes, without 1 of 3 launches")
        measured["joules"] = None  # a counter failed
        self.assertEqual(energy.of(run), (1800.0, 2))

    def test_names_are_the_keys_that_differ_if_they_tell_runs_apart(self):
        runs = self.runs({"stage": 1}, {"stage": 3, "precision": "fp16"})
        naming.name_runs(runs)
        self.assertEqual(
            [run.name for run in runs], ["zero.stage=1, train.precision=fp32", "zero.stage=3, train.precision=fp16"]
        )
        self.assertEqual([name for name, _ in summary.deck_rows(runs)], ["zero.stage", "train.precision", "run.metrics"])
        for changes in ([{}, {}], [{"stage": 1}, {"stage": 3}, {"stage": 3}]):
            runs = self.runs(*changes)
            naming.name_runs(runs)
            self.assertEqual([run.name for run in runs], [str(i) for i in range(len(changes))])

    def test_names_that_would_be_too_long_are_not_made(self):
        runs = self.runs({"precision": "x" * 60}, {})
        naming.name_runs(runs)
        self.assertEqual([run.name for run in runs], ["0", "1"])


class TensorBoard(scripts.Scripts):
    def test_steps_are_counts_of_steps_done(self):
        (run,) = records.read_all([write_run(self.folder / "a.jsonl")])
        found = [point[:3] for point in curves.points(run)]
        self.assertEqual([s for s, tag, _ in found if tag == "loss/training"], list(range(1, 10)))
        self.assertIn((9, "loss/wiki", 3.125), found)
        self.assertIn((4, "loss/validation", 2.5), found)
        when = curves.clock(run)
        self.assertAlmostEqual(when(9) - when(4), 2.5, places=3)

    def test_experts_have_the_least_even_and_the_median_block(self):
        runs = records.read_all([write_run(self.folder / f"{i}.jsonl", step=step) for i, step in enumerate((EXPERTS, {}))])
        found, of_dense = ([one for one in curves.points(run) if one.tag.startswith("experts/")] for run in runs)
        self.assertEqual([(point.tag, round(point.value, 6)) for point in found if point.step == 9],
                         [("experts/load_largest_block", 3.0), ("experts/load_median_block", 2.25), ("experts/entropy_least_block", 0.5),
                          ("experts/entropy_median_block", 0.7)])  # fmt: skip
        self.assertEqual((len(found), of_dense), (36, []))

    def test_event_files_hold_the_curves(self):
        runs = [write_run(self.folder / f"{stage}.jsonl", stage=stage) for stage in (1, 2)]
        arguments = ("report.py", *runs, "-o", self.folder / "report.html", "--tensorboard", self.folder / "events")
        result = self.run_script(*arguments)
        if "needs the Python package tensorboard" in result.stderr:
            self.skipTest("tensorboard is not installed; bash cmake/debian.sh tests installs it")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(p.name for p in (self.folder / "events").iterdir()), ["zero.stage=1", "zero.stage=2"])
        from tensorboard.compat.proto.event_pb2 import Event

        (file,) = (self.folder / "events/zero.stage=1").iterdir()
        data, found, at = file.read_bytes(), [], 0
        while at < len(data):  # 8 bytes of length, 4 of its checksum, the record, 4 of its checksum
            size = struct.unpack_from("<Q", data, at)[0]
            event = Event.FromString(data[at + 12 : at + 12 + size])
            found += [(event.step, value.tag, value.simple_value) for value in event.summary.value]
            at += size + 16
        (run,) = records.read_all([runs[0]])
        self.assertEqual(len(found), len(list(curves.points(run))))
        self.assertIn((9, "loss/wiki", 3.125), found)
        again = self.run_script(*arguments)
        self.assertEqual(again.returncode, 1)
        self.assertIn("holds event files already", again.stderr)

    def test_a_missing_package_is_named_with_the_way_to_get_it(self):
        with mock.patch.dict("sys.modules", {"tensorboard": None}), mock.patch("importlib.util.find_spec", lambda name: name):
            result = self.run_script("report.py", write_run(self.folder / "a.jsonl"), "--tensorboard", self.folder / "events")
        self.assertEqual(result.returncode, 1)
        self.assertIn("pip install tensorboard", result.stderr)

    def test_names_become_folders(self):
        self.assertEqual(tensorboard_files.folder_name("zero.stage=1, a/b"), "zero.stage=1,_a_b")
        self.assertEqual(tensorboard_files.folder_name("/"), "run")


def plan(size, ranks, stage, **memory):
    return {"parameters": size, "ranks": ranks, "stage": stage, "memory": memory, "total_bytes": sum(memory.values())}


class Plans(scripts.Scripts):
    def write(self, name, plans):
        (self.folder / name).write_text(json.dumps(plans))
        return self.folder / name

    def test_stages_of_one_number_of_ranks(self):
        plans = self.write("a.json", [plan(75e8, 64, s, parameters=15e9 / (s + 1), optimizer=4e9) for s in range(4)])
        self.check_picture("plot_plan.py", plans, "--limit", "32GB", height=400)

    def test_ranks_and_stages_of_several_models(self):
        files = [self.write(f"{size:g}.json", [plan(size, n, s, optimizer=size * 16 / n ** (s / 3)) for n in (1, 4, 16) for s in (1, 2, 3)])
                 for size in (1e12, 75e8)]  # fmt: skip
        self.check_picture("plot_plan.py", *files, "--limit", "80 GiB")

    def test_speed_over_ranks(self):
        plans = [
            plan(75e8, n, s, parameters=15e9) | {"tokens_per_second": 1000 * n * (1 - s / 10)}
            for n in (8, 16, 64)
            for s in (1, 3)
        ]
        refused = {"ranks": 99, "refused": "too few micro-batches"}
        self.check_picture("plot_plan.py", self.write("a.json", [refused, *plans]), "--speed", height=300)
        without = self.run_script("plot_plan.py", self.write("b.json", [plan(75e8, 8, 1, parameters=15e9)]), "--speed")
        self.assertIn("the plans have no tokens_per_second", without.stderr)

    def test_ranks_of_a_deck(self):
        self.check_picture(
            "plot_plan.py",
            self.write("a.json", [plan(1e8, n, 2, parameters=2e8, activations=1e9, io=0) for n in (1, 2)]),
            height=250,
        )

    def test_what_is_no_plan_is_named(self):
        for text, fault in (("[]", "a list of plans"), ("{", "Expecting"), ('[{"ranks": 1}]', "a list of plans")):
            path = self.folder / "bad.json"
            path.write_text(text)
            result, _ = self.draw("plot_plan.py", path)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"{path}: is not the output of kzero plan --json: ", result.stderr)
            self.assertIn(fault, result.stderr)
        self.assertIn("is not a size", self.run_script("plot_plan.py", "x.json", "--limit", "32 apples").stderr)
        self.assertIn("cannot be read", self.run_script("plot_plan.py", self.folder / "none.json").stderr)

    def test_values_are_rounded_as_in_the_paper(self):
        import plot_plan

        self.assertEqual([plot_plan.gigabytes(v) for v in (41.25e9, 1.875e9, 120e9, 16e12)], ["41.3", "1.88", "120", "16000"])
        self.assertEqual(plot_plan.size_of("32GiB"), 32 * 2**30)


def trace(*events, **facts):
    names = [{"name": "thread_name", "ph": "M", "pid": rank, "tid": 0, "args": {"name": "compute"}} for rank in (0, 1)]
    spans = [
        {"ph": "X", "pid": rank, "tid": 0, "name": name, "cat": cat, "ts": ts, "dur": dur, "args": {}}
        for rank, name, cat, ts, dur in events
    ]
    return {"otherData": {"steps": "step 3", "ranks": 2, **facts}, "traceEvents": names + spans}


class TimeLines(scripts.Scripts):
    EVENTS = ((0, "kzero::engine::step", "phase", 0, 10000), (0, "gelu", "kernel", 1000, 3000), (0, "data: all_gather", "message", 5000, 4000),
              (0, "inner", "copy", 6000, 1000), (1, "kzero::engine::step", "phase", 500, 9000))  # fmt: skip

    def test_a_time_line_is_drawn(self):
        path = self.folder / "trace.json"
        path.write_text(json.dumps(trace(*self.EVENTS)))
        self.check_picture("plot_profile.py", path)
        self.check_picture("plot_profile.py", path, "--ranks", "1", "--begin", "2", "--end", "5")
        self.check_picture("plot_profile.py", path, "--step", "1")
        self.assertEqual(self.draw("plot_profile.py", path, "--step", "2")[0].stderr, "--step 2: the file has steps 1 to 1\n")
        result, _ = self.draw("plot_profile.py", path, "--begin", "7", "--end", "5")
        self.assertEqual((result.returncode, result.stderr), (1, "--begin 7 is not before --end 5\n"))
        self.assertIn("no computing thread", self.draw("plot_profile.py", path, "--ranks", "5")[0].stderr)

    def test_all_recorded_steps_are_drawn_unless_one_is_chosen(self):
        import plot_profile

        step = "kzero::engine::step"
        events = [
            (rank, step, "phase", rank * 100 + begin, length)
            for rank in (0, 1)
            for begin, length in ((1000, 2000), (4000, 9000))
        ]
        path = self.folder / "trace.json"
        path.write_text(json.dumps(trace(*events)))
        lanes, _ = plot_profile.read(path)
        self.assertEqual(plot_profile.window_of(lanes, None), (1, 13.1))
        self.assertEqual(plot_profile.window_of(lanes, 1), (1, 3.1))
        self.assertEqual(plot_profile.window_of(lanes, 2), (4, 13.1))

    def test_own_times_leave_out_what_is_inside(self):
        import plot_profile

        path = self.folder / "trace.json"
        path.write_text(json.dumps(trace(*self.EVENTS)))
        lanes, _ = plot_profile.read(path)
        times = plot_profile.own_times([lane for lane in lanes if lane.rank == 0], lambda span: span.name)
        self.assertEqual(times, {"kzero::engine::step": 3, "gelu": 3, "data: all_gather": 3, "inner": 1})
        self.assertEqual([span.depth for span in lanes[0].spans], [0, 1, 1, 2])

    def test_what_is_no_time_line_is_named(self):
        path = self.folder / "bad.json"
        for text in ("{}", "[1]", "x"):
            path.write_text(text)
            result, _ = self.draw("plot_profile.py", path)
            self.assertEqual(
                (result.returncode, result.stderr), (1, f"{path}: is not a time line; give the file that run.profile names\n")
            )


if __name__ == "__main__":
    unittest.main()
