"""Times of nodes and of launches: who computes and who waits, and where the time of a run went."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from launch import FOR_DEVICES, PATIENCE, USES_NCCL, LaunchTest, ranks_of

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "postprocess"))
import goodput  # noqa: E402
import records as reader  # noqa: E402

# Steps whose computation takes ten times as long as their messages. Without a GEMM library, all steps are like this.
LARGER = (
    ()
    if FOR_DEVICES and not USES_NCCL
    else ("model.hidden=256", "model.heads=4", "model.layers=4", "model.sequence=128", "train.micro_batch=2")
)


class Hindrance:
    """Stops a process for four fifths of the time."""

    def __init__(self, process):
        self.process, self.over = process, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.wait(0.02):
            os.kill(self.process, signal.SIGSTOP)
            self.over.wait(0.08)
            os.kill(self.process, signal.SIGCONT)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Nodes(LaunchTest):
    def test_a_run_on_one_node_records_its_ranks(self):
        result = self.expect(self.train(*LARGER, "train.validate_every=2", "data.validation_fraction=0.2", ranks=2), 0)
        (record,) = self.metrics("nodes")
        self.assertEqual((record["step"], record["steps"], record["by"], record["count"]), (6, 6, "rank", 2))
        self.assertEqual(sorted(row["first_rank"] for row in record["nodes"]), [0, 1])
        whole = sum(row["compute_seconds"] + row["wait_seconds"] for row in record["nodes"])
        self.assertAlmostEqual(whole / 2, record["seconds"], places=9)
        self.assertGreater(record["compute_seconds"]["min"], 0)
        self.assertGreater(record["wait_seconds"]["max"], 0)
        self.assertNotIn(" is slow", result.stdout)

    def test_a_rank_that_the_others_wait_for_is_named(self):
        launch = subprocess.Popen(self.command(["train", "deck.toml", *LARGER, "train.steps=1000000", "run.log_every=100000"], 2), cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        self.addCleanup(lambda: (launch.kill(), launch.communicate()) if launch.poll() is None else None)
        timer = threading.Timer(PATIENCE, launch.kill)  # ends the loop below
        timer.start()
        self.addCleanup(timer.cancel)
        said, named = [], ""
        for line in launch.stdout:
            said.append(line)
            if line.startswith("steps "):
                break
        with Hindrance(ranks_of(launch)[1]):
            for line in launch.stdout:
                said.append(line)
                if "is slow" in line:
                    named = line
                    break
        self.assertRegex(named, r"^rank 1 is slow: the other ranks waited for it \d+ % of the last \d+ steps \(it computes .* s a step, "
                         r"the others .* s", "".join(said))  # fmt: skip
        launch.send_signal(signal.SIGTERM)
        launch.communicate(timeout=PATIENCE)
        slow = [row["first_rank"] for record in self.metrics("nodes") for row in record["nodes"] if row["slow"]]
        self.assertEqual(set(slow), {1})


class Goodput(LaunchTest):
    def test_the_parts_of_a_killed_run_add_up_to_its_time(self):
        began = time.time()
        overrides = (
            "checkpoint.every=2",
            "train.validate_every=3",
            "data.validation_fraction=0.2",
            "train.validation_batches=1",
        )
        launch = self.start(*overrides)
        os.kill(ranks_of(launch)[1], signal.SIGKILL)
        self.finish(launch)
        self.expect(self.train(*overrides, "run.max_steps=3", "train.steps=1000000", ranks=2), 75)
        ended = time.time()
        (run,) = reader.read(self.folder / "metrics.jsonl")
        times = [record["time"] for launch in run.launches for record in launch]
        self.assertEqual(times, sorted(times))
        found = goodput.of(run)
        self.assertEqual(found.launches, 2)
        first = run.launches[0][0]
        wall = times[-1] - (first["time"] - first["process_seconds"])
        self.assertAlmostEqual(found.total, wall, places=6)
        self.assertLess(wall, ended - began + 0.1)
        for part in ("productive", "checkpoint", "start", "other", "lost"):
            self.assertGreater(found.seconds[part], 0, part)
        (interruption,) = found.interruptions
        self.assertEqual(interruption.reason, "killed")
        self.assertEqual(interruption.lost, interruption.steps - run.launches[1][0]["first_step"])
        self.assertEqual(len(run.steps), run.launches[1][0]["first_step"] + 3)


if __name__ == "__main__":
    unittest.main()
