"""A call on a checkpoint's file that fails ends the run with code 4, the file's name and the reason, and leaves the checkpoint before as it was;
one that a signal interrupts is repeated. Prints how many calls failed. KZERO_ALL_WRITES: every single write."""

import errno
import itertools
import os
import shutil
import unittest

from launch import LaunchTest, records

WAYS = {"plain": [], "asynchronous": ["checkpoint.asynchronous=true"], "shared": ["checkpoint.ranks_per_file=2"]}
SHARDS = {
    "plain": ("shard_00000.h5", "shard_00001.h5"),
    "asynchronous": ("shard_00000.h5", "shard_00001.h5"),
    "shared": ("shard_00000.h5", "shard_00000.h5"),
}  # of each rank
FILES = [(way, rank, name) for way in WAYS for rank, name in (*enumerate(SHARDS[way]), (0, "manifest.h5"))]
# The system's words, and MPI-IO's.
REASONS = {
    errno.EDQUOT: "Disk quota exceeded|Quota exceeded",
    errno.EIO: "Input/output error",
    errno.ENOSPC: "No space left on device|Not enough space",
}


class Calls(LaunchTest):
    def setUp(self):
        super().setUp()
        self.saved = self.folder / "saved"
        self.failed = 0
        # Each rank is to write its own part of a shared file, as ranks on nodes of their own do.
        (self.folder / "hints").write_text("romio_cb_write disable\n")
        os.environ["ROMIO_HINTS"] = str(self.folder / "hints")
        self.addCleanup(os.environ.pop, "ROMIO_HINTS")

    def run_with(self, failure, *overrides):
        (self.folder / "metrics.jsonl").unlink(missing_ok=True)
        os.environ["KZERO_CALLS_ROOT"] = str(self.saved.resolve())
        os.environ["KZERO_CALLS_FAIL"] = failure
        try:
            return self.train("train.steps=100", "checkpoint.every=1", *overrides, ranks=2)
        finally:
            del os.environ["KZERO_CALLS_ROOT"], os.environ["KZERO_CALLS_FAIL"]

    def expect_failure(self, way, call, name, number, rank, first=1, count=1):
        """Whether there was such a call. If so, it ended the run as it should."""
        path = rf"saved/step_{self.newest + 1:08}\.(\w+\.)?partial/{name}"
        result = self.run_with(f"{call} {name} {number} {rank} {first} {count}", "run.max_steps=1", *WAYS[way])
        said = f"{way}: {call} {first} of {name} on rank {rank}, {os.strerror(number)}: {result.returncode}\n{result.stderr}"
        if result.returncode == 75:
            self.newest += 1
            return False
        self.failed += 1
        self.assertEqual(result.returncode, 4, said)
        self.assertEqual(result.stderr.count("kzero: "), 1, said)
        self.assertRegex(result.stderr, path, said)
        self.assertRegex(result.stderr, REASONS[number], said)
        self.assertEqual(self.checkpoints()[-1], f"step_{self.newest:08}", said)
        self.assertEqual(records(self.folder / "metrics.jsonl", "start")[-1]["first_step"], self.newest, said)
        return True

    def begin(self, way):
        shutil.rmtree(self.saved, ignore_errors=True)
        self.newest = 1
        self.expect(self.train("train.steps=100", "run.max_steps=1", *WAYS[way], ranks=2), 75)

    def test_every_close_that_fails(self):
        for way, files in itertools.groupby(FILES, lambda file: file[0]):
            self.begin(way)
            for (_, rank, name), reason in itertools.product(files, REASONS):
                with self.subTest(way=way, rank=rank, name=name, reason=os.strerror(reason)):
                    self.assertTrue(self.expect_failure(way, "close", name, reason, rank))
        print(f"{self.failed} closes failed", flush=True)

    def test_writes_and_syncs_that_fail(self):
        reasons = itertools.cycle(REASONS)
        for way, files in itertools.groupby(FILES, lambda file: file[0]):
            self.begin(way)
            for _, rank, name in files:
                with self.subTest(way=way, rank=rank, name=name):
                    self.assertTrue(self.expect_failure(way, "fsync", name, next(reasons), rank))
                    # All of them take minutes; some, while there are as many.
                    for first in itertools.count(1) if "KZERO_ALL_WRITES" in os.environ else (1, 5, 25):
                        if not self.expect_failure(way, "write", name, next(reasons), rank, first):
                            break
        print(f"{self.failed} writes and syncs failed", flush=True)

    def test_what_a_signal_interrupts_is_repeated(self):
        for way in WAYS:
            self.begin(way)
            for call, name in (
                ("open", "manifest.h5"),
                ("fsync", "h5"),
                ("write", "h5"),
                ("allocate", "h5"),
                ("fsync", "latest.partial"),
            ):
                with self.subTest(way=way, call=call):
                    failure = f"{call} {name} {errno.EINTR} 0 1 3"
                    self.expect(self.run_with(failure, "run.max_steps=1", *WAYS[way]), 75)
        self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)


if __name__ == "__main__":
    unittest.main()
