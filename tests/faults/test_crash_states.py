"""A restart after a crash at any instant continues from a valid checkpoint, no older than the last one that was reported; without any one of the
program's syncs it would not. Arguments: names of tests. Prints how many states and syncs there were."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from crash_states import CONTENTS_OF_PARTIAL, Contents, Disk, read_log, reported
from launch import LaunchTest

CHECKER = os.environ["KZERO_CHECK_STATES"]
SAVED = "runs/first/saved"  # below the folder that is watched, in which nothing is there yet


class Restarts:
    """Lays states out and asks where a restart from each begins."""

    def __init__(self, folder, contents):
        self.folder, self.contents = folder, contents
        (folder / "contents").mkdir(parents=True)
        self.checker = subprocess.Popen([CHECKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers, self.like, self.count = {}, {}, 0

    def close(self):
        self.checker.communicate()

    def write_tree(self, tree):
        place = self.folder / str(self.count)
        self.count += 1
        place.mkdir()
        for path, content in sorted(tree.items(), key=lambda item: item[0]):
            if content is None:
                (place / path).mkdir()
                continue
            stored = self.folder / "contents" / str(content)
            if not stored.exists():
                stored.write_bytes(self.contents.bytes[content])
            os.link(stored, place / path)
        return place / SAVED

    def ask(self, tree):
        """(name, name after tidying, problem) of the search; None if enough states are like this one."""
        key = frozenset(tree.items())
        if key not in self.answers:
            partial = [path for path, content in tree.items() if content is None and path.endswith(".partial")]
            visible = frozenset(
                (path, content) for path, content in tree.items() if not path.startswith(tuple(p + "/" for p in partial))
            )
            self.like[visible] = self.like.get(visible, 0) + 1
            self.answers[key] = None
            if self.like[visible] <= CONTENTS_OF_PARTIAL:
                self.checker.stdin.write(f"{self.write_tree(tree)}\n")
                self.checker.stdin.flush()
                self.answers[key] = self.checker.stdout.readline().rstrip("\n").split("\t")
        return self.answers[key]


class CrashStates(LaunchTest):
    def setUp(self):
        super().setUp()
        fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.place = Path(tempfile.mkdtemp(prefix="kzero_crash_", dir=fast)).resolve()
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        self.watched, self.launches = self.place / "watched", 0
        self.watched.mkdir()
        self.damaged, self.latest_is_reported = [], True  # an asynchronous run writes `latest` after the report
        self.contents = Contents()
        self.restarts = Restarts(self.place / "states", self.contents)
        self.addCleanup(self.restarts.close)

    def now(self):
        """The contents of the watched folder, parents first."""
        return {
            str(p.relative_to(self.watched)): p.read_bytes() if p.is_file() else None for p in sorted(self.watched.rglob("*"))
        }

    def record(self, *overrides):
        """The calls of a run."""
        self.launches += 1
        log, metrics = self.place / f"log{self.launches}", self.place / f"{self.launches}.jsonl"
        inodes = {str(p.stat().st_ino): str(p.relative_to(self.watched)) for p in self.watched.rglob("*")}
        inodes[str(self.watched.stat().st_ino)] = ""
        # Each rank writes its own part of a shared file, as ranks on nodes of their own do.
        (self.place / "hints").write_text("romio_cb_write disable\n")
        environment = {
            "KZERO_CALLS_ROOT": str(self.watched),
            "KZERO_CALLS_LOG": str(log),
            "KZERO_CALLS_REPORT": str(metrics),
            "ROMIO_HINTS": str(self.place / "hints"),
        }
        os.environ.update(environment)
        try:
            self.expect(
                self.train(
                    f"checkpoint.folder={self.watched / SAVED}",
                    f"run.metrics={metrics}",
                    f"run.end_file={self.place / 'end.json'}",
                    "checkpoint.every=1",
                    *overrides,
                    ranks=2,
                ),
                0,
            )
        finally:
            for name in environment:
                del os.environ[name]
        return [(0, "launch", [], inodes), *read_log(log)]

    def violation(self, tree, least, complete):
        """The problem with a restart from this state, or None."""
        answer = self.restarts.ask(tree)
        if answer is None:
            return None
        for name in answer[:2]:
            if name == "-":
                if least is not None:
                    return f"nothing is found, {least} was reported"
                continue
            inside = SAVED + "/" + name + "/"
            step = int(name.split(".")[0][5:])
            if least is not None and step < least:
                return f"{name} is found, {least} was reported"
            if (
                name == answer[0]
                and frozenset((p[len(inside) :], c) for p, c in tree.items() if p.startswith(inside)) not in complete[step]
            ):
                return f"{name} is found and was not written like this"
        if answer[2] and not self.damaged:
            return answer[2]
        if damaged := {name for name in answer[3].split(",") if name} - set(self.damaged):
            return f"{sorted(damaged)} are damaged"
        latest = tree.get(SAVED + "/latest")
        if latest is None:
            return "latest is missing" if least is not None and self.latest_is_reported else None
        text = self.contents.bytes[latest].decode()
        if not text.endswith("\n") or not (text[:-1] in self.damaged or f"{SAVED}/{text[:-1]}/manifest.h5" in tree):
            return f"latest says {text!r}"
        if self.latest_is_reported and least is not None and int(text[5:]) < least:
            return f"latest says {text!r}, {least} was reported"
        return None

    def follow(self, start, log, least, complete, skipped=None):
        """The first violation of a run in which sync number `skipped` did nothing, whose states before it are known."""
        disk, syncs = Disk(start, self.contents), 0
        for rank, call, words, data in [*log, (0, "report", [], b"")]:
            step = reported(data) if call == "report" else None
            if call in ("fsync", "report") and (skipped is None or syncs > skipped):
                if wrong := self.first_wrong(disk, least, complete):
                    return f"before {call} {' '.join(words)} (sync {syncs}): {wrong}"
            if call == "fsync":
                syncs += 1
                if syncs - 1 == skipped:
                    continue
            disk.follow(rank, call, words, data)
            if step is not None:
                least = step
                if wrong := self.first_wrong(disk, least, complete) or self.lock_without_name(disk):
                    return f"after the report of step {step} (sync {syncs}): {wrong}"
        return None

    def first_wrong(self, disk, least, complete):
        for tree in disk.states():
            if wrong := self.violation(tree, least, complete):
                return f"{wrong}; {sorted(p for p in tree if p.count('/') <= SAVED.count('/') + 1)}"
        return None

    def lock_without_name(self, disk):
        """The problem with the lock after a crash, or None. A lock that does not say whose it is costs the next run two minutes."""
        for tree in disk.states():
            lock = tree.get(SAVED + "/lock")
            if lock is not None and b"\ntoken " not in self.contents.bytes[lock]:
                return f"the lock says {self.contents.bytes[lock]!r}"
        return None

    def written(self, start, log):
        """{step: the sets of files that a checkpoint of it may be}, and the folder in the end."""
        complete, disk = {}, Disk(start, self.contents)

        def files_of(tree, path):
            return frozenset((p[len(path) + 1 :], c) for p, c in tree.items() if p.startswith(path + "/"))

        damaged = [files_of(disk.now(), f"{SAVED}/{name}") for name in self.damaged]
        for record in [*log, (0, "rename", None, None)]:
            if record[1] == "rename":  # nothing is removed without one before
                tree = disk.now()
                for path in (
                    p for p, c in tree.items() if c is None and p.startswith(SAVED + "/step_") and not p.endswith(".partial")
                ):
                    if (files := files_of(tree, path)) not in damaged:
                        complete.setdefault(int(path.rpartition("/")[2].split(".")[0][5:]), set()).add(files)
            if record[2] is not None:
                disk.follow(*record)
        return complete, {path: c if c is None else self.contents.bytes[c] for path, c in disk.now().items()}

    def explore(self, *overrides, least=None, damaged=(), superfluous=0):
        """All states of a run from the checkpoint `least`; `damaged`: what need not be found again."""
        self.damaged = damaged
        start = self.now()
        log = self.record(*overrides)
        self.check(start, log, least, " ".join(overrides))
        self.expect_all_syncs_needed(start, log, least, superfluous)
        return start, log

    def check(self, start, log, least, title):
        self.complete, end = self.written(start, log)
        self.assertEqual(self.now(), end, "a change was not recorded")
        self.assertIsNone(self.follow(start, log, least, self.complete))
        print(
            f"{title}: {len(log)} calls, {len(self.restarts.answers)} states, {self.restarts.count} written out, all good",
            flush=True,
        )

    def expect_all_syncs_needed(self, start, log, least, superfluous):
        known, missed, syncs = len(self.restarts.answers), [], 0
        for k, i in enumerate(i for i, record in enumerate(log) if record[1] == "fsync"):
            path = self.synced(start, log, i)
            if not re.match(f"{SAVED}/(step_|latest)", path) and not SAVED.startswith(path):
                continue  # of no checkpoint
            syncs += 1
            if not self.follow(start, log, least, self.complete, skipped=k):
                missed.append(f"sync {k} by rank {log[i][0]}: {path}")
        print(
            f"    without one of {syncs} syncs {len(self.restarts.answers) - known} states more, {syncs - len(missed)} found",
            flush=True,
        )
        self.assertEqual(len(missed), superfluous, f"nothing happens without these: {missed}")

    def synced(self, start, log, index):
        """The path that record `index` syncs."""
        disk = Disk(start, self.contents)
        for record in log[:index]:
            disk.follow(*record)
        inode = disk.by_number[log[index][2][0]]
        return next((path for path in disk.now() if disk.find(path) == inode), "")

    def save(self, *overrides):
        """A checkpoint to resume from."""
        self.expect(
            self.train(
                f"checkpoint.folder={self.watched / SAVED}",
                f"run.end_file={self.place / 'end.json'}",
                "train.steps=100",
                "checkpoint.every=1",
                "checkpoint.keep=0",
                *overrides,
                ranks=2,
            ),
            75,
        )

    def test_plain(self):
        self.explore("train.steps=3", "checkpoint.keep=1")

    def test_two_are_kept(self):
        # Here `latest` does not name what is removed, and the removal syncs the folder again before the report.
        self.explore("train.steps=4", "checkpoint.keep=2", superfluous=2)

    def test_asynchronous(self):
        self.latest_is_reported = False
        self.save("run.max_steps=1")
        # Old checkpoints are removed before a write, so that an old `latest` names one that still exists.
        self.explore("train.steps=4", "checkpoint.keep=1", "checkpoint.asynchronous=true", least=1, superfluous=1)

    def test_shared(self):
        self.explore("train.steps=3", "checkpoint.keep=1", "checkpoint.ranks_per_file=2")

    def test_a_step_that_is_written_again(self):
        """The newest is damaged, so its place is taken. Then jobs that are killed where a name is not safe, one after them, and a crash."""
        self.save("run.max_steps=3")
        newest = self.watched / SAVED / "step_00000003"
        shard = newest / "shard_00001.h5"
        shard.write_bytes(shard.read_bytes()[:-1])
        # Nothing is lost with a damaged one, so the names of old and new need not be synced one by one; and `latest` says what it said.
        start, log = self.explore("train.steps=3", "checkpoint.keep=2", least=2, damaged=[newest.name], superfluous=3)
        for kill in [i + 1 for i, record in enumerate(log) if record[1] == "rename"]:
            shutil.rmtree(self.watched)
            disk = Disk(start, self.contents)
            for record in log[:kill]:
                disk.follow(*record)
            for path, content in sorted(disk.now().items()):
                if content is None:
                    (self.watched / path).mkdir(parents=True)
                else:
                    (self.watched / path).write_bytes(self.contents.bytes[content])
            self.check(start, [*log[:kill], *self.record("train.steps=4", "checkpoint.keep=2")], 2, f"killed after call {kill}")


if __name__ == "__main__":
    unittest.main()
