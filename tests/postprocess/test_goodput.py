#!/usr/bin/env python3
"""Where the time of made-up runs went, to the last bit, and what the report says of it."""

import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

import scripts  # first: makes the scripts' folder known

# isort: split
import goodput
import plot_nodes
import records
import tables
from launches import Launch, write


class Texts(HTMLParser):
    """The cells, captions and alternative texts of a page."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.alternatives = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.alternatives.append(dict(attributes)["alt"])

    def handle_data(self, data):
        self.texts.append(data)


class NamedRun:
    name = "run"


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "run.jsonl"

    def runs(self, *launches, broken=()):
        return records.read(write(self.file, *launches, broken=broken))

    def goodput(self, *launches, broken=()):
        (run,) = self.runs(*launches, broken=broken)
        return goodput.of(run)

    def check_sum(self, found, first, last):
        """The parts add up to the time from the first process to the last record, exactly."""
        self.assertEqual(
            found.total, last.records[-1]["time"] - (first.records[0]["time"] - first.records[0]["process_seconds"])
        )


class Goodput(Folder):
    def test_a_launch_that_ends_in_order(self):
        one = Launch(1000).steps(3).validation(1.5).evaluation(0.5).checkpoint(0.75, seconds=99).steps(2).end()
        found = self.goodput(one)
        self.assertEqual(found.seconds, {"productive": 10, "recomputed": 0, "evaluation": 2, "checkpoint": 0.75, "start": 3,
                                         "other": 5 * 0.25 + 1, "lost": 0})  # fmt: skip
        self.check_sum(found, one, one)
        self.assertEqual((found.interruptions, found.launches), ([], 1))

    def test_a_killed_launch_whose_steps_are_run_again(self):
        one = Launch(1000).steps(2).checkpoint(0.5).steps(3)  # killed after step 5; the last line is broken
        two = Launch(1100, first_step=2, start=4).steps(4).end("wall_limit")
        three = Launch(1200, first_step=6).steps(1).end()
        found = self.goodput(one, two, three, broken=[0])
        self.assertEqual(found.seconds["productive"], 2 * 2 + 4 * 2 + 2)
        self.assertEqual(found.seconds["recomputed"], 3 * 2)
        self.assertEqual(found.seconds["start"], 3 + 4 + 3)
        self.assertEqual(found.seconds["lost"], (1100 - one.records[-1]["time"]) + (1200 - two.records[-1]["time"]))
        self.check_sum(found, one, three)
        first, second = found.interruptions
        self.assertEqual((first.reason, first.steps, first.resumed, first.lost, first.seconds), ("killed", 5, 2, 3, 6))
        self.assertEqual(first.away, 1100 - one.records[-1]["time"])
        self.assertEqual((second.reason, second.steps, second.resumed, second.lost, second.seconds), ("wall_limit", 6, 6, 0, 0))

    def test_the_pause_after_a_completed_launch_is_not_lost(self):
        one = Launch(1000).steps(4).end()
        two = Launch(5000, first_step=4).steps(2)  # more steps were asked for; killed
        three = Launch(5100, first_step=4).steps(3).end()
        again = Launch(9000, first_step=7).end("nothing_to_do")
        four = Launch(9900, first_step=7).steps(1).end()
        found = self.goodput(one, two, three, again, four)
        pauses = [(one, 5000), (three, 9000), (again, 9900)]
        self.assertEqual(found.paused, sum(began - launch.records[-1]["time"] for launch, began in pauses))
        self.assertEqual(found.seconds["lost"], 5100 - two.records[-1]["time"])
        self.assertEqual([(i.launch, i.reason) for i in found.interruptions], [(2, "killed")])
        self.assertEqual(found.total + found.paused, four.records[-1]["time"] - 1000)
        _, rows = tables.of_goodput([(NamedRun(), found)])
        self.assertIn("pauses after a completed launch, not in the sum", [name for name, _ in rows])

    def test_steps_that_two_later_launches_undid(self):
        one = Launch(1000).steps(6)
        two = Launch(1100, first_step=4).steps(3)  # killed before it saved
        three = Launch(1200, first_step=2)  # an older checkpoint; killed before its first step
        four = Launch(1300, first_step=2).steps(5).end()
        found = self.goodput(one, two, three, four)
        self.assertEqual(found.seconds["productive"], (2 + 5) * 2)
        self.assertEqual(found.seconds["recomputed"], (4 + 3) * 2)
        self.check_sum(found, one, four)
        self.assertEqual([one.lost for one in found.interruptions], [2, 5, 0])
        self.assertEqual([one.steps for one in found.interruptions], [6, 7, 2])

    def test_a_run_that_has_not_ended(self):
        one = Launch(1000).steps(4)
        found = self.goodput(one)
        self.assertEqual((found.seconds["productive"], found.seconds["other"]), (8, 3 * 0.25))
        self.check_sum(found, one, one)

    def test_a_run_that_begins_again_at_step_0_is_another(self):
        one, again = Launch(1000).steps(4), Launch(2000, start=5).steps(2).end()
        first, second = map(goodput.of, self.runs(one, again))
        self.check_sum(first, one, one)
        self.check_sum(second, again, again)
        self.assertEqual((first.seconds["productive"], second.seconds["productive"]), (8, 4))
        self.assertEqual((first.seconds["lost"], second.interruptions), (0, []))

    def test_clocks_that_disagree_lose_no_negative_time(self):
        found = self.goodput(Launch(1000).steps(4), Launch(1005, first_step=4).steps(1).end())
        self.assertEqual(found.seconds["lost"], 0)

    def test_a_file_without_times_has_no_goodput(self):
        old = Launch(1000).steps(2).end()
        for record in old.records:
            del record["time"]
        self.assertIsNone(self.goodput(old))
        new = Launch(1000).steps(2)
        del new.records[0]["process_seconds"]
        self.assertIsNone(self.goodput(new))

    def test_many_interruptions_are_summed_up(self):
        launches = [Launch(1000 + 100 * n, first_step=2 * n).steps(3) for n in range(tables.MAX_INTERRUPTIONS + 3)]
        _, rows = tables.of_interruptions(self.goodput(*launches))
        self.assertEqual(len(rows), tables.MAX_INTERRUPTIONS + 1)
        self.assertEqual((rows[0][0], rows[0][1][3:5]), ("launches 1 to 2", ["2", "4.0 s"]))
        self.assertEqual(rows[1][0], "launch 3")


class Nodes(Folder):
    def test_sums_are_of_the_records_that_list_a_node(self):
        one = (
            Launch(1000)
            .steps(4)
            .nodes(4, [("n2", 8.0, 0.5), ("n1", 2.0, 6.5)])
            .steps(2)
            .nodes(2, [("n2", 4.0, 0.25)], count=2)
            .end()
        )
        (run,) = self.runs(one)
        slow, other = plot_nodes.nodes_of(run)
        self.assertEqual((slow.name, slow.step("compute"), slow.step("wait"), slow.slow), ("n2", 2, 0.125, True))
        self.assertEqual((other.name, other.step("compute"), other.step("wait"), other.slow), ("n1", 0.5, 1.625, False))
        heads, rows = tables.of_nodes(run)
        self.assertEqual(rows[0], ("n2", ["2 s", "0.125 s", "6 %", "0.0312 s", "0", "reported as slow"]))
        self.assertTrue(all(len(cells) == len(heads) for _, cells in rows))

    def test_steps_that_were_undone_have_no_nodes(self):
        rows = [("n1", 1.0, 1.0), ("n2", 1.0, 1.0)]
        one = Launch(1000).steps(4).nodes(4, rows).steps(4).nodes(4, rows)
        (run,) = self.runs(one, Launch(1100, first_step=4).steps(4).nodes(4, rows).end())
        self.assertEqual([record["step"] for record in run.nodes], [4, 8])

    def test_unlisted_nodes_are_counted(self):
        (run,) = self.runs(Launch(1000).steps(1).nodes(1, [(f"n{i}", 1.0, 1.0) for i in range(16)], count=64).end())
        self.assertEqual(tables.of_nodes(run)[1][-1][0], "48 more, which computed for less long")
        self.assertIn("64 nodes, ", tables.nodes_text(run))

    def test_ranks_of_one_node_are_named_as_ranks(self):
        (run,) = self.runs(Launch(1000).steps(1).nodes(1, [(3, 2.0, 0.0), (0, 1.0, 1.0)], by="rank").end())
        self.assertEqual([name for name, _ in tables.of_nodes(run)[1]], ["rank 3", "rank 0"])
        self.assertEqual(tables.nodes_text(run), "run: 2 ranks, rank 3 computed longest, 2 s a step, rank 0 next, 1 s")


class Report(scripts.Scripts):
    def page(self, *files):
        target = self.folder / "report.html"
        result = self.run_script("report.py", *files, "-o", target)
        self.assertEqual(result.returncode, 0, result.stderr)
        return Texts(target.read_text())

    def test_sections_on_goodput_and_nodes(self):
        one = Launch(1000).steps(2).checkpoint(0.5).steps(3).nodes(5, [("n2", 8.0, 0.5), ("n1", 2.0, 6.5)])
        two = Launch(1025, first_step=2).steps(4).nodes(4, [("n2", 8.0, 0.5), ("n1", 2.0, 6.5)]).end()
        page = self.page(write(self.folder / "run.jsonl", one, two, broken=[0]))
        for text in ("Goodput", "Nodes", "Interruptions of run", "killed", "n2", "reported as slow"):
            self.assertIn(text, page.texts)
        row = page.texts.index("recomputed: steps that a later launch ran again")
        self.assertEqual(page.texts[row + 1], "6.0 s (15.8 %)")
        described = [text for text in page.alternatives if text.startswith(("Goodput", "Nodes"))]
        self.assertEqual(described[0], "Goodput: run: 32 % productive, 16 % recomputed, 1 % checkpoint, 16 % start, 9 % other, 27 % lost "
                                       "of 38.0 s in 2 launches")  # fmt: skip
        self.assertEqual(described[1], "Nodes: run: 2 nodes, n2 computed longest, 2 s a step, n1 next, 0.5 s")

    def test_files_without_times_and_nodes_have_neither_section(self):
        old = Launch(1000).steps(2).end()
        for record in old.records:
            del record["time"]
        page = self.page(write(self.folder / "run.jsonl", old))
        self.assertNotIn("Goodput", page.texts)
        self.assertNotIn("Nodes", page.texts)
        for script in ("plot_goodput.py", "plot_nodes.py"):
            result, _ = self.draw(script, self.folder / "run.jsonl")
            self.assertIn("the file is of an older kzero", result.stderr)

    def test_pictures_of_any_number_of_nodes_and_runs(self):
        for count in (1, 4, 64):
            rows = [(f"node{i:02}", 1 + i / 64, 1 - i / 64) for i in range(min(count, 16))]
            launch = Launch(1000)
            for _ in range(5):
                launch.steps(20).nodes(20, rows, count=count)
            write(self.folder / f"{count}.jsonl", launch.end())
        files = [self.folder / f"{count}.jsonl" for count in (1, 4, 64)]
        for chosen in ([files[0]], [files[2]], files):
            self.check_picture("plot_nodes.py", *chosen)
            self.check_picture("plot_goodput.py", *chosen)


if __name__ == "__main__":
    unittest.main()
